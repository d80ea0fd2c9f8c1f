package engine

import (
	"fmt"

	"github.com/spf13/pflag"

	"hindsight/pkg/stream/embedded"
)

// RegisterSync adds the flag --sync.
func RegisterSync(f *pflag.FlagSet, sync *string) {
	f.StringVar(sync, "sync", embedded.SyncInterval, "what a power cut may take of an embedded log: always (nothing that "+
		"was acknowledged or read: each waits for the disk) or interval (up to the last second)")
}

// CheckSync reports what is wrong with the value of --sync beside a log.
func CheckSync(spec Spec, sync string) error {
	if sync != embedded.SyncAlways && sync != embedded.SyncInterval {
		return fmt.Errorf("--sync %q: expected %s or %s", sync, embedded.SyncAlways, embedded.SyncInterval)
	}
	if sync == embedded.SyncInterval {
		return nil
	}
	switch spec.Kind {
	case "nats":
		return fmt.Errorf("--sync %s is for an embedded log; on NATS servers set sync_interval: always in their jetstream "+
			"section", sync)
	case "kafka":
		return fmt.Errorf("--sync %s is for an embedded log; on Kafka set replication and min_isr, or flush.messages=1 on "+
			"the topics", sync)
	case "mem":
		return fmt.Errorf("--sync %s is for an embedded log; one in memory survives nothing", sync)
	}
	return nil
}
