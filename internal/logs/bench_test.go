//go:build unix

package logs

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"hindsight/internal/scan"
)

// benchText is at least 4 MiB of a published sample, or of another format what that is
// when converted.
func benchText(b *testing.B, name, format string) []byte {
	text, err := os.ReadFile(sample(b, name))
	if err != nil {
		b.Fatal(err)
	}
	if format != Dsjson {
		r := openText(b, string(text), Options{Format: Dsjson, Inactive: true})
		all, err := readAll(b, r)
		if err != nil {
			b.Fatal(err)
		}
		text = writeAll(b, format, all)
	}
	return bytes.Repeat(text, 1+(4<<20)/len(text))
}

// cpu returns the processor time that this process has used: what a benchmark on a
// machine that others use, too, can go by.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// report says how many MB/s a core does, and how many times longer it takes than
// splitting the same bytes into lines, which any reader of them does at least.
func report(b *testing.B, text []byte, f func()) {
	const passes = 20
	start := cpu()
	for range passes {
		l := scan.NewLines(bufio.NewReaderSize(bytes.NewReader(text), scan.BufferBytes))
		for {
			if _, _, err := l.Next(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
	floor := (cpu() - start) / passes
	b.ReportAllocs()
	start = cpu()
	for b.Loop() {
		f()
	}
	took := (cpu() - start) / time.Duration(b.N)
	b.ReportMetric(float64(len(text))/1e6/took.Seconds(), "cpu-MB/s")
	b.ReportMetric(float64(took)/float64(max(floor, 1)), "times-lines")
}

// BenchmarkDecode decodes records alone.
func BenchmarkDecode(b *testing.B) {
	for _, c := range [][2]string{{"dsjson_cb.json", Dsjson}, {"b1848_dsjson_parser_regression.txt", Dsjson},
		{"dsjson_cb.json", JSONL}, {"dsjson_cb.json", Msgpack}} {
		b.Run(c[1]+"/"+c[0], func(b *testing.B) {
			text := benchText(b, c[0], c[1])
			var rec Record
			report(b, text, func() {
				dec, _, err := newReader(Options{Format: c[1]}, "").newDecoder(
					&input{r: bufio.NewReaderSize(bytes.NewReader(text), scan.BufferBytes)})
				for err == nil {
					rec.reset()
					_, _, err = dec.next(&rec)
				}
				if !errors.Is(err, io.EOF) {
					b.Fatal(err)
				}
			})
		})
	}
}

// BenchmarkConvert does all that replayer convert does between two formats, but for the
// disk: what is read again and again is not a repeat here.
func BenchmarkConvert(b *testing.B) {
	for _, c := range [][2]string{{Dsjson, ""}, {Dsjson, JSONL}, {Dsjson, Msgpack}, {Dsjson, Parquet}, {JSONL, Dsjson},
		{Msgpack, JSONL}} {
		b.Run(c[0]+"-"+c[1], func(b *testing.B) {
			text := benchText(b, "dsjson_cb.json", c[0])
			report(b, text, func() { convertAll(b, text, c[0], c[1]) })
		})
	}
}

func convertAll(b *testing.B, text []byte, from, to string) {
	r, err := Open(Stdin, Options{Stdin: bytes.NewReader(text), Format: from, Dedup: 1})
	if err != nil {
		b.Fatal(err)
	}
	var w Writer
	if to != "" {
		if w, err = NewWriter(io.Discard, to); err != nil {
			b.Fatal(err)
		}
	}
	var rec Record
	for err == nil {
		if err = r.Next(&rec); err == nil && w != nil {
			err = w.Write(&rec)
		}
	}
	if w != nil {
		err = errors.Join(err, w.Close())
	}
	if !errors.Is(err, io.EOF) || r.Account().Duplicates > 0 {
		b.Fatal(err, r.Account())
	}
}
