// Command personalizer makes the calls of Azure Personalizer to a running decider: rank,
// reward, activate, and evaluate. PERSONALIZER.md says what stands for what.
//
//	personalizer rank REQUEST.json          a Rank request; prints a Rank response
//	personalizer reward EVENT-ID VALUE
//	personalizer activate EVENT-ID
//	personalizer evaluate LOG.dsjson [FLAG…]  flags of replayer backtest
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

func main() {
	log.SetFlags(0)
	url := flag.String("nats", nats.DefaultURL, "where the decider answers")
	model := flag.String("model", "hindsight", "name of its model")
	flag.Parse()
	if flag.Arg(0) == "evaluate" {
		if err := evaluate(flag.Args()[1:]); err != nil {
			log.Fatal(err)
		}
		return
	}
	nc, err := nats.Connect(*url)
	if err != nil {
		log.Fatalf("%s: %v; start a decider, or give its address with -nats", *url, err)
	}
	defer nc.Close()
	if err := call(&client{nc, *model}, flag.Args(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func call(c *client, args []string, w io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "rank":
		text, err := os.ReadFile(args[1])
		if err != nil {
			return err
		}
		response, err := c.rank(text)
		if err != nil {
			return err
		}
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(response)
	case len(args) == 3 && args[0] == "reward":
		value, err := strconv.ParseFloat(args[2], 64)
		if err != nil {
			return fmt.Errorf("reward %q is no number", args[2])
		}
		return c.reward(args[1], value)
	case len(args) == 2 && args[0] == "activate":
		return c.activate(args[1])
	}
	return errors.New("usage: personalizer [-nats URL] [-model NAME] rank FILE | reward EVENT VALUE | activate EVENT | " +
		"evaluate LOG")
}

// evaluate judges policies on a log, as an offline evaluation does: what each would have
// earned, with intervals.
func evaluate(args []string) error {
	cmd := exec.Command("replayer", append([]string{"backtest", "--data"}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// client asks a decider.
type client struct {
	nc    *nats.Conn
	model string
}

// rank asks for a decision.
func (c *client) rank(text []byte) (*rankResponse, error) {
	var r rankRequest
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&r); err != nil {
		return nil, err
	}
	var reply decision
	if err := c.ask("decide", r.context(), &reply); err != nil {
		return nil, err
	}
	return reply.response(), nil
}

// reward says what an event was worth, under an id of its own: where rewards are summed,
// one that had to be sent twice counts once.
func (c *client) reward(event string, value float64) error {
	return c.ask("outcome", map[string]any{"id": event, "reward": value, "outcome_id": newID()}, nil)
}

// activate says that what was decided is shown: of a model with activation: required.
func (c *client) activate(event string) error {
	return c.ask("outcome", map[string]any{"id": event, "activated": true}, nil)
}

// ask sends a request, and again where the answer is "not now", after longer each time and at random: with
// the same id a decision that exists is sent again.
func (c *client) ask(verb string, body, reply any) error {
	b, err := encode(body)
	if err != nil {
		return err
	}
	limit := time.Now().Add(10 * time.Second)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		m, err := c.nc.Request(c.model+"."+verb, b, 2*time.Second)
		switch {
		case err == nil && m.Header.Get("Nats-Service-Error") == "" && reply == nil:
			return nil
		case err == nil && m.Header.Get("Nats-Service-Error") == "":
			return json.Unmarshal(m.Data, reply)
		case err == nil && !slices.Contains([]string{"429", "503"}, m.Header.Get("Nats-Service-Error-Code")):
			return fmt.Errorf("%s.%s: %s", c.model, verb, m.Header.Get("Nats-Service-Error"))
		case time.Now().After(limit):
			if err == nil {
				err = errors.New(m.Header.Get("Nats-Service-Error"))
			}
			return fmt.Errorf("%s.%s at %s: %w; a decider with this model must run there", c.model, verb,
				c.nc.ConnectedAddr(), err)
		}
		time.Sleep(wait/2 + rand.N(wait))
	}
}
