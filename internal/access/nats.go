package access

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"hindsight/internal/daemon"
	"hindsight/internal/secret"
	"hindsight/pkg/stream/nats"
)

// SeedFile is where the secret seed lies when the log is on servers.
const SeedFile = "./hindsight.seed"

// NATS says how NATS servers let us in.
type NATS struct {
	User, PasswordFile         string
	Creds, NKey, CA, Cert, Key string // files
	Replicas                   int
	Getenv                     func(string) string // nil: os.Getenv
}

// natsPasswordEnv is where the password is taken from without a file. There is no flag for
// it: every user of a machine can read the arguments of its processes.
const natsPasswordEnv = "HINDSIGHT_NATS_PASSWORD"

// Register adds the flags.
func (f *NATS) Register(fs *pflag.FlagSet) {
	fs.StringVar(&f.User, "nats-user", "", "user for nats://…")
	fs.StringVar(&f.PasswordFile, "nats-password-file", "", "file, mode 0600, with that user's password (or the "+
		"environment variable "+natsPasswordEnv+")")
	fs.StringVar(&f.Creds, "nats-creds", "", "file with credentials for nats://… (a JWT and its seed)")
	fs.StringVar(&f.NKey, "nats-nkey", "", "file with an nkey seed for nats://…")
	fs.StringVar(&f.CA, "nats-ca", "", "file with the certificates that sign the servers' (default: those of the "+
		"system); asks for TLS")
	fs.StringVar(&f.Cert, "nats-cert", "", "file with a client certificate; asks for TLS")
	fs.StringVar(&f.Key, "nats-key", "", "file with the key of --nats-cert")
	fs.IntVar(&f.Replicas, "nats-replicas", 1, "copies of each new stream on --log nats://…, in a cluster")
	daemon.Bounds{"nats-replicas": {1, 5}}.Set(fs)
}

// IsNATS reports whether a --log names NATS servers.
func IsNATS(log string) bool {
	return strings.HasPrefix(log, "nats:") || strings.HasPrefix(log, "tls:")
}

// None is the value of --nats for no requests at all.
const None = "none"

// RegisterRequests adds the flag for requests beside a log that carries none.
func RegisterRequests(fs *pflag.FlagSet, requests *string) {
	fs.StringVar(requests, "nats", "", "where requests are answered beside --log kafka://…: "+
		"nats://[USER:PASSWORD@]HOST[:PORT],… or none (default: a server inside this process, see --listen)")
}

// CheckRequests reports what is wrong with the value of --nats.
func CheckRequests(requests string) error {
	if requests == "" || requests == None {
		return nil
	}
	return checkNATS("--nats", requests)
}

func checkNATS(flag, url string) error {
	if err := (&nats.Access{URL: url}).Check(); err != nil {
		return fmt.Errorf("%s %s: %w", flag, nats.Redact(url), err)
	}
	return nil
}

// dial connects to the servers that a --log names. name is shown by the servers'
// tools; logger is told when the connection is lost and found.
func (f *NATS) dial(log, name string, logger *slog.Logger) (*nats.Client, error) {
	secret.Warn(logger, f.Creds, "--nats-creds")
	secret.Warn(logger, f.NKey, "--nats-nkey")
	secret.Warn(logger, f.Key, "--nats-key")
	password, err := f.password()
	if err != nil {
		return nil, err
	}
	a := nats.Access{URL: log, User: f.User, Password: password, Creds: f.Creds, NKey: f.NKey, CA: f.CA, Cert: f.Cert,
		Key: f.Key, Log: logger}
	c, err := a.Dial(name, nats.Options{Replicas: f.Replicas})
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, nats.ErrRefused):
		return nil, fmt.Errorf("%w; give --nats-user and --nats-password-file, --nats-creds or --nats-nkey", err)
	case errors.Is(err, nats.ErrCertificate):
		return nil, fmt.Errorf("%w; see --nats-ca, --nats-cert and --nats-key", err)
	}
	return nil, err
}

// password returns the password of --nats-user, "" without one.
func (f *NATS) password() (password string, err error) {
	switch {
	case f.User == "" && f.PasswordFile != "":
		return "", errors.New("--nats-password-file without a user: see --nats-user")
	case f.User == "":
		return "", nil // the variable may be there for others
	case f.PasswordFile != "":
		return secret.Line(f.PasswordFile, "password", maxPassword)
	}
	getenv := f.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	if password = getenv(natsPasswordEnv); password == "" {
		return "", fmt.Errorf("which password has the user for NATS? Give --nats-password-file, or the environment "+
			"variable %s", natsPasswordEnv)
	}
	return password, nil
}
