package service

import (
	"context"
	"time"
)

// stopGrace is how long work that is under way at a stop may take to finish.
const stopGrace = 5 * time.Second

// outlive returns a context that ends stopGrace after ctx does.
func outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	detach := context.AfterFunc(ctx, func() { time.AfterFunc(stopGrace, cancel) })
	return work, func() { detach(); cancel() }
}
