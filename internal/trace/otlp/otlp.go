// Package otlp sends spans to an OpenTelemetry collector, by OTLP over HTTP, with OpenTelemetry's own SDK. The standard
// environment variables OTEL_… say where to and how.
package otlp

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"

	"hindsight/internal/daemon"
	"hindsight/internal/trace"
	"hindsight/pkg/codec"
)

const (
	flushing  = 3 * time.Second // to send what is left at the end
	warnEvery = time.Minute
	protocol  = "http/protobuf"
)

// Open returns the tracer of a program, nil unless OTEL_EXPORTER_OTLP_ENDPOINT is set. end sends what is left, for a
// limited time.
func Open(program, version string, getenv func(string) string, logger *slog.Logger) (t trace.Tracer, end func(),
	err error) {
	traces := func(name string) string {
		return cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), getenv("OTEL_EXPORTER_OTLP_"+name))
	}
	if traces("ENDPOINT") == "" || getenv("OTEL_TRACES_EXPORTER") == "none" ||
		strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return nil, func() {}, nil
	}
	if p := traces("PROTOCOL"); p != "" && p != protocol {
		return nil, nil, daemon.Usagef("OTEL_EXPORTER_OTLP_PROTOCOL is %q: only %s is spoken, to port 4318 of most "+
			"collectors", p, protocol)
	}
	otel.SetErrorHandler(warner(logger))
	ctx := context.Background()
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, nil, err
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", program), attribute.String("service.version", version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, nil, err
	}
	batches := sdk.WithSpanProcessor(sdk.NewBatchSpanProcessor(exporter))
	requests := sdk.NewTracerProvider(batches, sdk.WithResource(about))
	// A round is sampled when it is decided: the sampler of the environment is not asked again.
	joins := sdk.NewTracerProvider(batches, sdk.WithResource(about), sdk.WithSampler(sdk.AlwaysSample()))
	logger.Info("traces go out", "endpoint", traces("ENDPOINT"))
	return &tracer{requests.Tracer("hindsight"), joins.Tracer("hindsight")}, func() {
		ctx, cancel := context.WithTimeout(ctx, flushing)
		defer cancel()
		if err := requests.Shutdown(ctx); err != nil {
			logger.Warn("the last spans are lost", "error", err)
		}
	}, nil
}

// warner says now and then that spans are lost.
func warner(logger *slog.Logger) otel.ErrorHandlerFunc {
	var last atomic.Int64
	return func(err error) {
		now := time.Now().UnixNano()
		if was := last.Load(); now-was >= int64(warnEvery) && last.CompareAndSwap(was, now) {
			logger.Warn("spans are lost; decisions continue", "error", err)
		}
	}
}

type tracer struct{ requests, joins api.Tracer }

// span is a piece of work, with its record's way to the log and the reply as spans below it.
type span struct {
	tracer api.Tracer
	ctx    context.Context
	span   api.Span
	last   time.Time // when the last piece of it was over
}

// Decided implements [trace.Tracer].
func (t *tracer) Decided(parent string, start time.Time, d *codec.Decision) trace.Span {
	return t.begin("decide", parent, start, round(d.ID), action(d.Actions[d.Action]),
		propensity(d.Propensities[d.Action]))
}

// Outcome implements [trace.Tracer].
func (t *tracer) Outcome(parent string, start time.Time, id string) trace.Span {
	return t.begin("outcome", parent, start, round(id))
}

func (t *tracer) begin(name, parent string, start time.Time, about ...attribute.KeyValue) *span {
	s := &span{tracer: t.requests, last: time.Now()}
	s.ctx, s.span = t.requests.Start(below(parent), name, api.WithTimestamp(start),
		api.WithSpanKind(api.SpanKindServer), api.WithAttributes(about...))
	return s
}

// Joined implements [trace.Tracer].
func (t *tracer) Joined(decision string, f *codec.Feedback) {
	of := api.SpanContextFromContext(below(decision))
	if !of.IsSampled() {
		return
	}
	now := time.Now()
	start := time.Unix(0, f.Time)
	if f.Time <= 0 || start.After(now) { // the log's clock may be another
		start = now
	}
	_, s := t.joins.Start(context.Background(), "join", api.WithTimestamp(start),
		api.WithLinks(api.Link{SpanContext: of}),
		api.WithSpanKind(api.SpanKindConsumer), api.WithAttributes(round(f.ID),
			action(f.Actions[f.Action]), propensity(f.Propensities[f.Action]),
			attribute.String("hindsight.fate", f.Fate.String())))
	s.End(api.WithTimestamp(now))
}

// The memory of ids and actions is used again while their spans wait.

func round(id string) attribute.KeyValue {
	return attribute.String("hindsight.round", strings.Clone(id))
}

func action(name string) attribute.KeyValue {
	return attribute.String("hindsight.action", strings.Clone(name))
}

func propensity(p float64) attribute.KeyValue { return attribute.Float64("hindsight.propensity", p) }

var w3c propagation.TraceContext

// below returns the context of what happens below a parent.
func below(parent string) context.Context {
	return w3c.Extract(context.Background(), propagation.MapCarrier{trace.Header: parent})
}

// Parent implements [trace.Span].
func (s *span) Parent() string {
	c := propagation.MapCarrier{}
	w3c.Inject(s.ctx, c)
	return c[trace.Header]
}

// Stored implements [trace.Span].
func (s *span) Stored(err error) { s.piece("append", err) }

// End implements [trace.Span].
func (s *span) End(replied bool) {
	if replied {
		s.piece("reply", nil)
	}
	s.span.End(api.WithTimestamp(s.last))
}

// piece makes the span of what was done since the last one.
func (s *span) piece(name string, err error) {
	_, p := s.tracer.Start(s.ctx, name, api.WithTimestamp(s.last))
	if s.last = time.Now(); err != nil {
		p.SetStatus(codes.Error, err.Error())
		s.span.SetStatus(codes.Error, err.Error())
	}
	p.End(api.WithTimestamp(s.last))
}
