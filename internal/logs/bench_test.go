package logs

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"time"
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

// floor is the time in which the same bytes are split into lines, which is what any
// reader of them does at least.
func floor(b *testing.B, text []byte) time.Duration {
	best := time.Duration(1<<63 - 1)
	for range 3 {
		start := time.Now()
		l := newLines(bufio.NewReaderSize(bytes.NewReader(text), bufferBytes))
		for {
			if _, _, err := l.next(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
		best = min(best, time.Since(start))
	}
	return best
}

// BenchmarkDecode decodes records alone.
func BenchmarkDecode(b *testing.B) {
	for _, c := range [][2]string{{"dsjson_cb.json", Dsjson}, {"b1848_dsjson_parser_regression.txt", Dsjson}, {"dsjson_cb.json", JSONL}, {"dsjson_cb.json", Msgpack}} {
		b.Run(c[1]+"/"+c[0], func(b *testing.B) {
			text := benchText(b, c[0], c[1])
			least := floor(b, text)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			var rec Record
			for b.Loop() {
				dec, _, err := newDecoder(&input{r: bufio.NewReaderSize(bytes.NewReader(text), bufferBytes)}, c[1])
				for err == nil {
					rec.Reset()
					_, _, err = dec.next(&rec)
				}
				if !errors.Is(err, io.EOF) {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(least), "times-lines")
		})
	}
}

// BenchmarkConvert does all that replayer convert does between two formats, but for the
// disk: what is read again and again is not a repeat here.
func BenchmarkConvert(b *testing.B) {
	for _, c := range [][2]string{{Dsjson, ""}, {Dsjson, JSONL}, {Dsjson, Msgpack}, {Dsjson, Parquet}, {JSONL, Dsjson}, {Msgpack, JSONL}} {
		b.Run(c[0]+"-"+c[1], func(b *testing.B) {
			text := benchText(b, "dsjson_cb.json", c[0])
			least := floor(b, text)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				convertAll(b, text, c[0], c[1])
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(least), "times-lines")
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
