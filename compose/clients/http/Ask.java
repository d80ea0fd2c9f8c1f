import java.net.URI;
import java.net.http.*;

/** Asks for a decision and reports what it was worth: java Ask.java [URL] */
class Ask {
    public static void main(String[] args) throws Exception {
        var url = args.length > 0 ? args[0] : "http://127.0.0.1:8080";
        var id = java.util.UUID.randomUUID();
        post(url + "/v1/decide", "{\"id\":\"" + id + "\",\"features\":{\"hour\":14},\"actions\":[\"banner\",\"video\",\"none\"]}");
        post(url + "/v1/outcome", "{\"id\":\"" + id + "\",\"reward\":1}");
    }

    static final HttpClient client = HttpClient.newHttpClient();

    static void post(String url, String body) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(url)).header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(body)).build();
        var answer = client.send(request, HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() >= 300) throw new Exception(answer.body());
        System.out.println(answer.body());
    }
}
