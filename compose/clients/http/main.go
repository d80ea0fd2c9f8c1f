// Command http asks for a decision and reports what it was worth:
//
//	go run main.go [URL]
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
)

func main() {
	url := "http://127.0.0.1:8080"
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	var decision struct{ ID, Action string }
	if err := json.Unmarshal(post(url+"/v1/decide", `{"features":{"hour":14},"actions":["banner","video","none"]}`),
		&decision); err != nil {
		log.Fatal(err)
	}
	fmt.Println(decision.ID, decision.Action)
	fmt.Printf("%s\n", post(url+"/v1/outcome", fmt.Sprintf(`{"id":%q,"reward":1}`, decision.ID)))
}

func post(url, body string) []byte {
	answer, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		log.Fatalf("%s: %s", answer.Status, b)
	}
	return b
}
