// Asks for a decision and reports what it was worth: dotnet run Ask.cs [URL]
using System.Net.Http.Json;

var client = new HttpClient { BaseAddress = new Uri(args.Length > 0 ? args[0] : "http://127.0.0.1:8080") };
var context = new { features = new { hour = 14, country = "DE" }, actions = new[] { "banner", "video", "none" } };
var answer = await client.PostAsJsonAsync("/v1/decide", context);
var decision = await answer.EnsureSuccessStatusCode().Content.ReadFromJsonAsync<Decision>();
Console.WriteLine($"{decision!.Id} {decision.Action} {decision.Propensity}");
answer = await client.PostAsJsonAsync("/v1/outcome", new { id = decision.Id, reward = 1 });
Console.WriteLine(await answer.EnsureSuccessStatusCode().Content.ReadAsStringAsync());

record Decision(string Id, string Action, double Propensity);
