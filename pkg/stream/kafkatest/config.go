package kafkatest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

const log4j = `<Configuration status="warn">
<Appenders><Console name="c"><PatternLayout pattern="%d{HH:mm:ss.SSS} %p %m ` +
	`(%c{1})%n%throwable{30}"/></Console></Appenders>
<Loggers><Root level="info"><AppenderRef ref="c"/></Root></Loggers>
</Configuration>
`

func sizeOption(megabytes int) string { return fmt.Sprintf("size=%dm", megabytes) }

// format makes a broker's folder.
func (c *Cluster) format(b *broker) error {
	data := filepath.Join(b.dir, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	if c.o.DiskMB > 0 {
		if err := mountSmall(data, c.o.DiskMB); err != nil {
			return fmt.Errorf("mount a small file system: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(b.dir, "log4j2.xml"), []byte(log4j), 0o600); err != nil {
		return err
	}
	var text strings.Builder
	properties := c.properties(b)
	for _, k := range slices.Sorted(maps.Keys(properties)) {
		fmt.Fprintf(&text, "%s=%s\n", k, properties[k])
	}
	path := filepath.Join(b.dir, "properties")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return err
	}
	if len(c.o.Users) > 0 {
		return c.runFormat(path)
	}
	blank.Lock()
	defer blank.Unlock()
	checkpoint := filepath.Join(data, "bootstrap.checkpoint")
	if blank.checkpoint == nil {
		err := c.runFormat(path)
		if err == nil {
			blank.checkpoint, err = os.ReadFile(checkpoint)
		}
		return err
	}
	meta := fmt.Sprintf("version=1\ncluster.id=%s\nnode.id=%d\ndirectory.id=%s\n", c.id, b.number, newID())
	if err := os.WriteFile(filepath.Join(data, "meta.properties"), []byte(meta), 0o600); err != nil {
		return err
	}
	return os.WriteFile(checkpoint, blank.checkpoint, 0o600)
}

// blank is what Kafka's own tool wrote into the first folder of this process: but for
// their IDs all folders of clusters without users are alike, and the tool takes its time.
var blank struct {
	sync.Mutex
	checkpoint []byte
}

// runFormat runs Kafka's own tool.
func (c *Cluster) runFormat(properties string) error {
	args := []string{"format", "--cluster-id", c.id, "--config", properties}
	for _, u := range c.o.Users {
		for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
			args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, u.Name, u.Password))
		}
	}
	cmd := c.jars.command(quick, "kafka.tools.StorageTool", args...)
	out := new(strings.Builder)
	cmd.Stdout, cmd.Stderr = out, out
	if err := begin(cmd); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("format a folder with %s: %w: %s", properties, err, out)
	}
	return nil
}

// properties returns what a broker is configured with. Clients use the listener CLIENT,
// brokers and this package INTERNAL, where everybody may do everything.
func (c *Cluster) properties(b *broker) map[string]string {
	var voters []string
	for _, o := range c.brokers {
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%d", o.number, o.controller))
	}
	brokers := fmt.Sprintf("CLIENT://127.0.0.1:%d,INTERNAL://127.0.0.1:%d", b.client, b.internal)
	replicas := fmt.Sprint(min(3, len(c.brokers)))
	p := map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        fmt.Sprint(b.number),
		"controller.quorum.voters":       strings.Join(voters, ","),
		"listeners":                      brokers + fmt.Sprintf(",CONTROLLER://127.0.0.1:%d", b.controller),
		"advertised.listeners":           fmt.Sprintf("CLIENT://%s,INTERNAL://127.0.0.1:%d", b.address(), b.internal),
		"controller.listener.names":      "CONTROLLER",
		"inter.broker.listener.name":     "INTERNAL",
		"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,CLIENT:" + c.protocol(),
		"log.dirs":                       filepath.Join(b.dir, "data"),
		"auto.create.topics.enable":      "false",
		"default.replication.factor":     replicas,
		// Small and quick.
		"offsets.topic.num.partitions":                     "2",
		"offsets.topic.replication.factor":                 replicas,
		"transaction.state.log.num.partitions":             "2",
		"transaction.state.log.replication.factor":         replicas,
		"transaction.state.log.min.isr":                    "1",
		"share.coordinator.state.topic.num.partitions":     "1",
		"share.coordinator.state.topic.replication.factor": replicas,
		"share.coordinator.state.topic.min.isr":            "1",
		"log.cleaner.dedupe.buffer.size":                   "2097152",
		"log.index.size.max.bytes":                         "1048576",
		"num.network.threads":                              "2",
		"num.io.threads":                                   "4",
		"num.recovery.threads.per.data.dir":                "1",
		"group.initial.rebalance.delay.ms":                 "0",
		"group.min.session.timeout.ms":                     "100",
		"log.initial.task.delay.ms":                        "500",
		"log.retention.check.interval.ms":                  "500",
		"log.segment.delete.delay.ms":                      "500",
		"broker.heartbeat.interval.ms":                     "300",
		// A killed one is noticed, and can come back, after this.
		"broker.session.timeout.ms": "2500",
	}
	c.security(b, p)
	maps.Copy(p, c.o.Properties)
	return p
}

func (c *Cluster) protocol() string {
	login := c.o.Tokens || len(c.o.Users) > 0
	switch {
	case c.o.TLS && login:
		return "SASL_SSL"
	case c.o.TLS:
		return "SSL"
	case login:
		return "SASL_PLAINTEXT"
	}
	return "PLAINTEXT"
}

// security adds the properties of TLS, users and their rights.
func (c *Cluster) security(b *broker, p map[string]string) {
	if c.o.TLS {
		p["listener.name.client.ssl.keystore.type"] = "PEM"
		p["listener.name.client.ssl.keystore.location"] = c.keystore(b)
	}
	if len(c.o.Users) > 0 {
		p["listener.name.client.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
		var users strings.Builder
		for _, u := range c.o.Users {
			fmt.Fprintf(&users, " user_%s=\"%s\"", u.Name, u.Password)
		}
		p["listener.name.client.plain.sasl.jaas.config"] = "org.apache.kafka.common.security.plain.PlainLoginModule " +
			"required" + users.String() + ";"
		for _, mechanism := range []string{"256", "512"} {
			p["listener.name.client.scram-sha-"+mechanism+
				".sasl.jaas.config"] = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
		}
	}
	if c.o.Tokens {
		p["listener.name.client.sasl.enabled.mechanisms"] = "OAUTHBEARER"
		p["listener.name.client.oauthbearer.sasl.jaas.config"] =
			"org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required " +
				"unsecuredLoginStringClaim_sub=\"broker\";"
	}
	if c.o.ACL {
		p["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
		p["super.users"] = "User:ANONYMOUS" // on INTERNAL
	}
}

// keystore makes the file with a broker's key and certificate.
func (c *Cluster) keystore(b *broker) string {
	cert, key := c.Authority.Issue(fmt.Sprintf("broker%d", b.number))
	var store []byte
	for _, path := range []string{key, cert} {
		text, err := os.ReadFile(path)
		if err != nil {
			c.t.Fatal(err)
		}
		store = append(store, text...)
	}
	path := filepath.Join(b.dir, "keystore.pem")
	if err := os.WriteFile(path, store, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}
