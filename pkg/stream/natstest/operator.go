package natstest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// Operator lets in who has credentials: a JWT that an account signed, and its seed.
type Operator struct {
	JWT      string
	System   string            // public key of the system account
	Accounts map[string]string // JWTs by public key
}

// NewOperator makes an operator with an account that may use JetStream, and returns
// the file with the credentials of a user there, and one of another operator's.
func NewOperator(t testing.TB) (o *Operator, creds, foreign string) {
	t.Helper()
	o, creds = newOperator(t)
	_, foreign = newOperator(t)
	return o, creds, foreign
}

func newOperator(t testing.TB) (*Operator, string) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	key := func(kind func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		k, err := kind()
		must(err)
		public, err := k.PublicKey()
		must(err)
		return k, public
	}
	operator, operatorID := key(nkeys.CreateOperator)
	_, systemID := key(nkeys.CreateAccount)
	account, accountID := key(nkeys.CreateAccount)
	user, userID := key(nkeys.CreateUser)
	oc := jwt.NewOperatorClaims(operatorID)
	oc.SystemAccount = systemID
	token, err := oc.Encode(operator)
	must(err)
	o := &Operator{JWT: token, System: systemID, Accounts: map[string]string{}}
	ac := jwt.NewAccountClaims(accountID)
	ac.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	o.Accounts[accountID], err = ac.Encode(operator)
	must(err)
	o.Accounts[systemID], err = jwt.NewAccountClaims(systemID).Encode(operator)
	must(err)
	token, err = jwt.NewUserClaims(userID).Encode(account)
	must(err)
	seed, err := user.Seed()
	must(err)
	text, err := jwt.FormatUserConfig(token, seed)
	must(err)
	path := filepath.Join(t.TempDir(), "user.creds")
	must(os.WriteFile(path, text, 0o600))
	return o, path
}

// configure makes a server trust the operator.
func (o *Operator) configure(so *server.Options) error {
	claims, err := jwt.DecodeOperatorClaims(o.JWT)
	if err != nil {
		return err
	}
	so.TrustedOperators, so.SystemAccount = []*jwt.OperatorClaims{claims}, o.System
	accounts := &server.MemAccResolver{}
	for id, token := range o.Accounts {
		if err := accounts.Store(id, token); err != nil {
			return err
		}
	}
	so.AccountResolver = accounts
	return nil
}
