package kafkatest

import (
	"context"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Resource is what a right is about: a topic or group by name, "*" for all of them, or
// the cluster, whose name is kafka-cluster.
type Resource struct {
	Type kmsg.ACLResourceType
	Name string
}

// Topic returns a topic.
func Topic(name string) Resource { return Resource{kmsg.ACLResourceTypeTopic, name} }

// Group returns a consumer group.
func Group(name string) Resource { return Resource{kmsg.ACLResourceTypeGroup, name} }

// Allow gives a user rights. With Options.ACL there are none at first.
func (c *Cluster) Allow(user string, r Resource, operations ...kmsg.ACLOperation) {
	c.t.Helper()
	c.do("allow "+user, func(ctx context.Context, cl *kgo.Client) error {
		q := kmsg.NewPtrCreateACLsRequest()
		for _, o := range operations {
			a := kmsg.NewCreateACLsRequestCreation()
			a.ResourceType, a.ResourceName, a.ResourcePatternType = r.Type, r.Name, kmsg.ACLResourcePatternTypeLiteral
			a.Principal, a.Host, a.Operation, a.PermissionType = "User:"+user, "*", o, kmsg.ACLPermissionTypeAllow
			q.Creations = append(q.Creations, a)
		}
		answer, err := q.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		for _, r := range answer.Results {
			if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
				return err
			}
		}
		return nil
	})
}

// Disallow takes all rights about a resource from a user.
func (c *Cluster) Disallow(user string, r Resource) {
	c.t.Helper()
	principal := "User:" + user
	c.do("disallow "+user, func(ctx context.Context, cl *kgo.Client) error {
		q := kmsg.NewPtrDeleteACLsRequest()
		f := kmsg.NewDeleteACLsRequestFilter()
		f.ResourceType, f.ResourceName, f.ResourcePatternType = r.Type, &r.Name, kmsg.ACLResourcePatternTypeLiteral
		f.Principal, f.Operation, f.PermissionType = &principal, kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
		q.Filters = append(q.Filters, f)
		answer, err := q.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(answer.Results[0].ErrorCode)
	})
}

// DataDir returns the folder of a broker's records: with Options.DiskMB, of its own small file system.
func (c *Cluster) DataDir(i int) string { return filepath.Join(c.brokers[i-1].dir, "data") }

// Ended returns a channel that is closed when a broker's process has ended.
func (c *Cluster) Ended(i int) <-chan struct{} { return c.brokers[i-1].done }
