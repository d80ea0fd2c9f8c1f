package logs

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
)

// benchFormat reads text again and again and reports MB/s, and how many passes of the
// same reader that only splits lines fit into one of decoding (the floor, in the same
// run).
func benchFormat(b *testing.B, format string, text []byte) {
	text = bytes.Repeat(text, 1+(4<<20)/len(text))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var rec Record
	for b.Loop() {
		dec, _, err := newDecoder(&input{r: bufio.NewReaderSize(bytes.NewReader(text), bufferBytes)}, format)
		if err != nil {
			b.Fatal(err)
		}
		for {
			rec.Reset()
			_, _, err := dec.next(&rec)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkDsjson(b *testing.B) {
	for _, name := range []string{"dsjson_cb.json", "b1848_dsjson_parser_regression.txt"} {
		b.Run(name, func(b *testing.B) {
			text, err := os.ReadFile(sample(b, name))
			if err != nil {
				b.Fatal(err)
			}
			benchFormat(b, Dsjson, text)
		})
	}
}
