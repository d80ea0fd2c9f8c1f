package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/vmihailenco/msgpack/v5"
)

// read prints what the log of a running decider has in a topic, a JSON object a record.
func read(dir, topic string) {
	nc, err := connect(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	js, err := nc.JetStream()
	if err != nil {
		log.Fatal(err)
	}
	sub, err := js.SubscribeSync(topic+".0", nats.OrderedConsumer())
	if err != nil {
		log.Fatalf("%s: %v; its topics are NAME.decisions, .outcomes, .feedback, .rejects of a model", topic, err)
	}
	for pending := uint64(1); pending > 0; {
		m, err := sub.NextMsg(time.Second)
		if errors.Is(err, nats.ErrTimeout) { // nothing is there
			return
		} else if err != nil {
			log.Fatal(topic, ": ", err)
		}
		at, err := m.Metadata()
		if err != nil {
			log.Fatal(topic, ": ", err)
		}
		pending = at.NumPending
		if m.Header.Get("hindsight-type") == "" { // else a control record
			fmt.Println(line(m.Data))
		}
	}
}

// connect connects as the user in a log's connect.json.
func connect(dir string) (*nats.Conn, error) {
	var access struct{ URL, User, Password, Inbox string }
	b, err := os.ReadFile(filepath.Join(dir, "connect.json"))
	if err != nil {
		return nil, fmt.Errorf("%w; give the folder of a decider's log", err)
	}
	if err := json.Unmarshal(b, &access); err != nil {
		return nil, err
	}
	// which nobody else can read
	nc, err := nats.Connect(access.URL, nats.UserInfo(access.User, access.Password),
		nats.CustomInboxPrefix(access.Inbox))
	if err != nil {
		return nil, fmt.Errorf("%s: %w; start a decider on %s", access.URL, err, dir)
	}
	return nc, nil
}

// line returns a record, a MessagePack map or JSON, as JSON; bytes in it are text.
func line(b []byte) string {
	var d map[string]any
	if err := msgpack.Unmarshal(b, &d); err != nil {
		return strings.TrimSpace(string(b))
	}
	for key, value := range d {
		if b, ok := value.([]byte); ok {
			d[key] = string(b)
		}
	}
	text, err := json.Marshal(d)
	if err != nil {
		log.Fatal(err)
	}
	return string(text)
}
