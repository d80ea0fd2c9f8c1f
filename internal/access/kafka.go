package access

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
	"github.com/spf13/pflag"

	"hindsight/internal/certs"
	"hindsight/internal/daemon"
	"hindsight/internal/envelope"
	"hindsight/internal/secret"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafka"
	"hindsight/pkg/stream/nats"
)

// kafkaPasswordEnv is where the password is taken from without a file. There is no flag for
// it: every user of a machine can read the arguments of its processes.
const kafkaPasswordEnv = "HINDSIGHT_KAFKA_PASSWORD"

// The mechanisms by which a user can log in.
const (
	mechanismPlain    = "plain"
	mechanismScram256 = "scram-sha-256"
	mechanismScram512 = "scram-sha-512"
	mechanismBearer   = "oauthbearer"
)

// Kafka says how Kafka brokers let us in, and what topics to make.
type Kafka struct {
	User, PasswordFile, Mechanism string
	TokenCommand                  string // program and arguments, separated by spaces
	CA, Cert, Key                 string // files
	Replication, MinISR           int
	Getenv                        func(string) string // nil: os.Getenv
}

// register adds the flags.
func (f *Kafka) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.User, "kafka-user", "", "user for --log kafka://…")
	fs.StringVar(&f.PasswordFile, "kafka-password-file", "", "file, mode 0600, with that user's password (or the "+
		"environment variable "+kafkaPasswordEnv+"), or the token of "+mechanismBearer+", read for each connection")
	fs.StringVar(&f.Mechanism, "kafka-sasl", mechanismScram512, "how that user logs in: "+mechanismPlain+", "+
		mechanismScram256+" or "+mechanismScram512+", or by a token, without a user: "+mechanismBearer)
	fs.StringVar(&f.TokenCommand, "kafka-token-command", "", "program, with its arguments, that writes the token of "+
		mechanismBearer+
		" to its standard output; it runs again when the token is refused, has expired, or is a minute old and a "+
		"connection is made")
	fs.StringVar(&f.CA, "kafka-ca", "", "file with the certificates that sign the brokers' (default: those of the "+
		"system); asks for TLS")
	fs.StringVar(&f.Cert, "kafka-cert", "", "file with a client certificate; asks for TLS")
	fs.StringVar(&f.Key, "kafka-key", "", "file with the key of --kafka-cert")
	fs.IntVar(&f.Replication, "kafka-replication", 0, "copies of each new topic on --log kafka://… (default: what the "+
		"brokers say)")
	fs.IntVar(&f.MinISR, "kafka-min-isr", 0, "copies that must have a record before it counts (default: one less than "+
		"there are, at least 1)")
	daemon.Bounds{"kafka-replication": {0, maxCopies}, "kafka-min-isr": {0, maxCopies}}.Set(fs)
}

// dial connects to the brokers that a --log names. name is shown by the brokers'
// tools. Errors name the brokers and what is wrong, never a password.
func (f *Kafka) dial(ctx context.Context, log, name string, logger *slog.Logger) (*client, error) {
	if f.Mechanism == mechanismBearer { // a token, which another program writes
		secret.Warn(logger, f.PasswordFile, "--kafka-password-file")
	}
	secret.Warn(logger, f.Key, "--kafka-key")
	a, err := parse(log)
	if err != nil {
		return nil, fmt.Errorf("--log %s: %w", nats.Redact(log), err)
	}
	o, err := f.options(ctx, a, logger)
	if err != nil {
		return nil, err
	}
	o.ClientID, o.Logger = name, logger
	o.Headers = func(topic string) func(*stream.Record) []stream.Header { return envelope.NewHeaders(topic).Of }
	if o.SASL != nil && !strings.HasPrefix(o.SASL.Name(), "SCRAM") && o.TLS == nil && logger != nil {
		logger.Warn("the password or token for Kafka goes over the network as it is: use kafkas://")
	}
	c, err := kafka.Dial(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", strings.Join(a.brokers, ","), advise(err, o))
	}
	return &client{Client: c, session: a.session}, nil
}

// advise adds which flags to look at.
func advise(err error, o kafka.Options) error {
	var network *net.OpError
	switch {
	case errors.Is(err, kafka.ErrAuthentication):
		return fmt.Errorf("%w; see --kafka-user, --kafka-password-file and --kafka-sasl", err)
	case errors.Is(err, kafka.ErrTLS):
		return fmt.Errorf("%w; see kafkas://, --kafka-ca, --kafka-cert and --kafka-key", err)
	case o.SASL == nil && o.TLS == nil && errors.Is(err, kafka.ErrAuthorization):
		return fmt.Errorf("%w; is --kafka-user missing?", err)
	case errors.As(err, &network) && network.Op == "dial":
		return fmt.Errorf("%w; start the brokers, or give an address at which they take clients", err)
	}
	return err
}

// options are what the engine is told.
func (f *Kafka) options(ctx context.Context, a *address, logger *slog.Logger) (o kafka.Options, err error) {
	o.Brokers = a.brokers
	if o.Replication, err = choose("replication", a.replication, "--kafka-replication", f.Replication); err != nil {
		return o, err
	}
	if o.MinISR, err = choose("min_isr", a.minISR, "--kafka-min-isr", f.MinISR); err != nil {
		return o, err
	}
	if o.Replication > 0 && o.MinISR > o.Replication {
		return o, fmt.Errorf("%d copies must have a record, and there are %d: see --kafka-min-isr and "+
			"--kafka-replication", o.MinISR, o.Replication)
	}
	if o.SASL, err = f.login(ctx, a); err != nil {
		return o, err
	}
	o.TLS, err = f.tls(a, logger)
	return o, err
}

// choose returns what is said in the URL or by a flag.
func choose(key string, inURL int, flag string, byFlag int) (int, error) {
	switch {
	case byFlag < 0:
		return 0, fmt.Errorf("%s %d: it must be at least 1", flag, byFlag)
	case inURL != 0 && byFlag != 0 && inURL != byFlag:
		return 0, fmt.Errorf("%s=%d in --log and %s %d contradict each other", key, inURL, flag, byFlag)
	}
	return max(inURL, byFlag), nil
}

// login returns how to log in, nil if not at all.
func (f *Kafka) login(ctx context.Context, a *address) (sasl.Mechanism, error) {
	command := strings.Fields(f.TokenCommand)
	switch isBearer := f.Mechanism == mechanismBearer; {
	case isBearer && f.PasswordFile != "" && len(command) > 0:
		return nil, errors.New("the token is in --kafka-password-file or from --kafka-token-command, not both")
	case isBearer && f.PasswordFile == "" && len(command) == 0:
		return nil, fmt.Errorf("--kafka-sasl %s: where is the token from? Give --kafka-password-file or "+
			"--kafka-token-command", mechanismBearer)
	case isBearer:
		b := &bearer{file: f.PasswordFile, command: command, limit: commandLimit}
		_, err := b.token(ctx)
		return b, err
	case f.TokenCommand != "":
		return nil, fmt.Errorf("--kafka-token-command is for --kafka-sasl %s", mechanismBearer)
	}
	user := f.User
	if user == "" {
		user = a.user
	} else if a.user != "" && a.user != user {
		return nil, errors.New("--log and --kafka-user name two users")
	}
	password, from, err := f.password(a)
	switch {
	case err != nil:
		return nil, err
	case user == "" && f.PasswordFile != "":
		return nil, errors.New("--kafka-password-file without a user: see --kafka-user")
	case user == "":
		return nil, nil // the variable may be there for others
	case from == "":
		return nil, fmt.Errorf("which password has the user for Kafka? Give --kafka-password-file, or the environment "+
			"variable %s", kafkaPasswordEnv)
	case password == "":
		return nil, fmt.Errorf("the password in %s is empty", from)
	}
	switch f.Mechanism {
	case mechanismPlain:
		return plain.Mechanism{Username: user, Password: password}, nil
	case mechanismScram256:
		return scram.Mechanism(scram.SHA256, user, password)
	case mechanismScram512, "":
		return scram.Mechanism(scram.SHA512, user, password)
	}
	return nil, fmt.Errorf("--kafka-sasl %q: expected %s, %s or %s, or %s", f.Mechanism, mechanismPlain,
		mechanismScram256, mechanismScram512, mechanismBearer)
}

// maxPassword is more than a password has.
const maxPassword = 4096

// password returns the password, and where it is from: a file before the environment before the URL.
func (f *Kafka) password(a *address) (password, from string, err error) {
	if f.PasswordFile != "" {
		password, err = secret.Line(f.PasswordFile, "password", maxPassword)
		return password, f.PasswordFile, err
	}
	getenv := f.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	if p := getenv(kafkaPasswordEnv); p != "" {
		return p, kafkaPasswordEnv, nil
	}
	if a.hasPassword {
		return a.password, "--log", nil
	}
	return "", "", nil
}

// tls returns the TLS to use, nil if none. A client certificate is read anew for each connection, the authorities once.
func (f *Kafka) tls(a *address, logger *slog.Logger) (*tls.Config, error) {
	if !a.tls && f.CA == "" && f.Cert == "" && f.Key == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		pool, err := certs.ReadPool(f.CA)
		if err != nil {
			return nil, fmt.Errorf("CA: %w", err)
		}
		c.RootCAs = pool
	}
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("a client certificate and its key go together: see --kafka-cert and --kafka-key")
	}
	if f.Cert != "" {
		pair, err := certs.NewPair(f.Cert, f.Key, logger)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		c.GetClientCertificate = pair.ForServer
	}
	return c, nil
}
