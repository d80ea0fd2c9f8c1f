package engine

import (
	"fmt"

	"github.com/spf13/pflag"

	"hindsight/pkg/stream/embedded"
)

// RegisterSync adds the flag --sync.
func RegisterSync(f *pflag.FlagSet, sync *string) {
	f.StringVar(sync, "sync", embedded.SyncInterval, "what a power cut can take from an embedded log: always (nothing "+
		"acknowledged: each record waits for the disk) or interval (up to the last second)")
}

// CheckSync reports what is wrong with the value of --sync beside a log.
func CheckSync(spec Spec, sync string) error {
	if sync != embedded.SyncAlways && sync != embedded.SyncInterval {
		return fmt.Errorf("--sync %q: expected %s or %s", sync, embedded.SyncAlways, embedded.SyncInterval)
	}
	instead := map[string]string{
		"nats":  "on NATS servers set sync_interval: always in their jetstream section",
		"kafka": "on Kafka set replication and min_isr, or flush.messages=1 on the topics",
		"mem":   "one in memory survives nothing",
	}[spec.Kind]
	if sync == embedded.SyncAlways && instead != "" {
		return fmt.Errorf("--sync %s is for an embedded log; %s", sync, instead)
	}
	return nil
}
