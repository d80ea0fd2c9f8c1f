// Command go asks a running decider for a decision and reports what it was worth:
//
//	go run ./compose/clients/go [URL]
//
// or prints a topic in its log, such as what could not be used, and why:
//
//	go run ./compose/clients/go read hindsight-data hindsight.rejects
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"time"

	"github.com/nats-io/nats.go"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == "read" {
		read(os.Args[2], os.Args[3])
		return
	}
	url := nats.DefaultURL // nats://127.0.0.1:4222, where the decider listens
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	nc, err := nats.Connect(url)
	if err != nil {
		log.Fatalf("%s: %v; start a decider", url, err)
	}
	defer nc.Close()

	var decision struct {
		ID         string  `json:"id"`
		Action     string  `json:"action"`
		Propensity float64 `json:"propensity"`
	}
	ask(nc, "hindsight.decide", `{"features":{"hour":14,"country":"DE"},"actions":["banner","video","none"]}`,
		&decision)
	fmt.Printf("round %s: show %s (drawn with probability %.3f)\n", decision.ID, decision.Action, decision.Propensity)

	var stored struct {
		Stored bool `json:"stored"`
	}
	ask(nc, "hindsight.outcome", fmt.Sprintf(`{"id":%q,"reward":1}`, decision.ID), &stored)
	fmt.Println("outcome stored:", stored.Stored)
}

// ask sends a request and reads its reply; an error comes in a header. One that passes, as under overload, is
// worth another try: later each time, and at random, so that clients do not come back all at once.
func ask(nc *nats.Conn, subject, body string, reply any) {
	m, err := nc.Request(subject, []byte(body), 2*time.Second)
	for wait := time.Second; err == nil && m.Header.Get("Retry-After") != "" && wait < 10*time.Second; wait *= 2 {
		time.Sleep(wait/2 + rand.N(wait))
		m, err = nc.Request(subject, []byte(body), 2*time.Second)
	}
	if err != nil {
		log.Fatal(subject, ": ", err, "; a decider with this model must answer at ", nc.ConnectedUrl())
	}
	if e := m.Header.Get("Nats-Service-Error"); e != "" {
		log.Fatal(subject, ": ", e)
	}
	if err := json.Unmarshal(m.Data, reply); err != nil {
		log.Fatal(err)
	}
}
