package embedded

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream/attach"
)

// Requester is somebody who may ask for decisions and report outcomes, and reads what it
// is answered below an inbox prefix of its own, [RequesterInbox], where nobody else reads.
type Requester struct {
	Name     string
	Password string // or its bcrypt hash, $2a$…
}

// RequesterInbox returns the inbox prefix of a requester, for its client library.
func RequesterInbox(name string) string {
	return natsgo.InboxPrefix[:len(natsgo.InboxPrefix)-1] + "_" + name
}

// ParseRequesters reads lines of a name, a space, and a password. Empty lines, and those
// that begin with #, are passed over. Errors name the line and show no password.
func ParseRequesters(text []byte) ([]Requester, error) {
	var all []Requester
	seen := map[string]bool{serviceUser: true, clientUser: true, anonymousUser: true}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		fields := strings.Fields(string(line))
		switch {
		case len(fields) == 0 || fields[0][0] == '#':
			continue
		case len(fields) != 2:
			return nil, fmt.Errorf("line %d: expected a name, a space, and a password without spaces", n)
		case !requesterName.MatchString(fields[0]):
			return nil, fmt.Errorf("line %d: the name may have letters, digits, - and _", n)
		case seen[fields[0]]:
			return nil, fmt.Errorf("line %d: the name %s is taken", n, fields[0])
		}
		seen[fields[0]] = true
		all = append(all, Requester{fields[0], fields[1]})
	}
	if len(all) == 0 {
		return nil, errors.New("nobody is named: expected lines of a name, a space, and a password")
	}
	return all, nil
}

// requesterName is what can be part of a subject.
var requesterName = regexp.MustCompile(`^[\w-]+$`)

// users sets who may connect to the server.
func (e *Engine) users(so *server.Options) {
	usual := natsgo.InboxPrefix + ">"
	so.Users = []*server.User{
		{Username: serviceUser, Password: e.access.Password},
		{Username: clientUser, Password: e.access.ClientPassword,
			Permissions: clientPermissions(usual, attach.ClientInbox+".>")},
	}
	for _, r := range e.o.Requesters {
		account := server.NewAccount(r.Name)
		so.Accounts = append(so.Accounts, account)
		so.Users = append(so.Users, &server.User{Username: r.Name, Password: r.Password, Account: account,
			Permissions: clientPermissions(RequesterInbox(r.Name) + ".>")})
	}
	if len(e.o.Requesters) == 0 {
		so.Users = append(so.Users, &server.User{Username: anonymousUser, Password: rand.Text(),
			Permissions: clientPermissions(usual)})
		so.NoAuthUser = anonymousUser
	}
}

// clientPermissions let a client ask and report, and nothing else: not write to a topic, not touch the store, not read
// what is delivered to others elsewhere than in the inboxes that are named.
func clientPermissions(inboxes ...string) *server.Permissions {
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: asked},
		Subscribe: &server.SubjectPermission{Allow: inboxes},
	}
}

// asked are the subjects of requests.
var asked = []string{"*.decide", "*.decide.*", "*.outcome"}

// connectAccounts lets requesters, each in an account of its own, ask in the one of the
// service. What a request names for its reply is then an inbox of the asker's account.
func (e *Engine) connectAccounts() error {
	ours := e.server.GlobalAccount()
	if !e.o.bare {
		// The server does so by itself only where there is no other account.
		if err := ours.EnableJetStream(nil, nil); err != nil {
			return fmt.Errorf("embedded server: %w", err)
		}
	}
	for _, r := range e.o.Requesters {
		theirs, err := e.server.LookupAccount(r.Name)
		for _, s := range asked {
			if err == nil {
				err = ours.AddServiceExport(s, nil)
			}
			if err == nil {
				err = theirs.AddServiceImport(ours, s, s)
			}
		}
		if err != nil {
			return fmt.Errorf("embedded server: account of requester %s: %w", r.Name, err)
		}
	}
	return nil
}
