package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"hindsight/pkg/codec"
)

// asked is a log of prompts, drawn uniformly among two actions: a is right about code, b about prose.
func asked(n int) [][]string {
	rows := [][]string{{"prompt", "subject", "action", "reward", "p"}}
	for i := range n {
		prompt, action, right := fmt.Sprintf("Write a function f(x) = %d*x;\nreturn it.", i), "a", i%2 == 0
		if right {
			prompt = fmt.Sprintf("Tell the story of %s, the %dth king", strings.Repeat("old ", i%5), i)
		}
		if i%3 == 0 {
			action = "b"
		}
		reward := "0"
		if right == (action == "b") {
			reward = "1"
		}
		rows = append(rows, []string{prompt, fmt.Sprint("s", i%3), action, reward, "0.5"})
	}
	return rows
}

func writeCSV(t *testing.T, rows [][]string) string {
	t.Helper()
	var b strings.Builder
	w := csv.NewWriter(&b)
	if err := w.WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "asked.csv", b.String())
}

var askedColumns = []string{"--action-column", "action", "--reward-column", "reward", "--propensity-column", "p"}

const textModel = "name: replay\nactions: [a, b]\nfeatures: {prompt: {text: ngrams}, subject: text}\n" +
	"reward: {min: 0, max: 1}\nwindow: 200 rounds\n"

// TestTextColumns: a column of texts in a CSV, declared by a flag or by a model file, and the same log as events
// give the same run; the words are learned.
func TestTextColumns(t *testing.T) {
	t.Parallel()
	rows := asked(400)
	rows[7][0] = strings.Repeat("Tell a long story. ", 20_000/19) // longer than a category may be
	data, model := writeCSV(t, rows), writeFile(t, "m.yaml", textModel)
	play := func(args ...string) map[string]any {
		t.Helper()
		r, _ := runs(t, append(args, "--delays", "none", "--window", "200")...)[0].(map[string]any)
		return r
	}
	flags := append(slices.Clone(askedColumns), "--features", "prompt:ngrams,subject:text")
	byFlag := play(append([]string{"--data", data}, flags...)...)
	byFile := play(append([]string{"--data", data, "--model", model, "--features", "prompt,subject"},
		askedColumns...)...)
	events := filepath.Join(t.TempDir(), "asked.jsonl")
	args := append([]string{"convert", data, "--to", "jsonl", "--out", events}, flags...)
	if got := execute(t.Context(), args...); got.code != 0 {
		t.Fatal(got.stderr)
	}
	asEvents := play("--data", events, "--model", model)
	for _, key := range []string{"mean_loss", "matched", "learned", "rounds"} {
		if byFlag[key] == nil {
			continue
		}
		if !reflect.DeepEqual(byFlag[key], byFile[key]) || !reflect.DeepEqual(byFlag[key], asEvents[key]) {
			t.Errorf("%s: %v by a flag, %v by a model file, %v as events", key, byFlag[key], byFile[key], asEvents[key])
		}
	}
	plain := play(append([]string{"--data", data, "--features", "subject:text"}, askedColumns...)...)
	if text, none := number(t, byFlag, "mean_loss"), number(t, plain, "mean_loss"); !(text < none-.1) {
		t.Errorf("mean loss %v with the text, %v without", text, none)
	}
	if got := execute(t.Context(), append([]string{"backtest", "--data", data, "--features", "prompt:text"},
		askedColumns...)...); !strings.Contains(got.stderr, "a text is UTF-8 of at most 4096 bytes") {
		t.Errorf("as a category: %s", got.stderr)
	}
}

// TestTextsLive plays a text, a vector and named features, of contexts and of actions, live, and recomputes all
// decisions and snapshots from the log alone.
func TestTextsLive(t *testing.T) {
	t.Parallel()
	var b []byte
	for i, row := range asked(300)[1:] {
		c := codec.Context{ID: fmt.Sprint("x", i), Features: []codec.Feature{
			{Name: "prompt", Kind: codec.Text, Text: row[0]}, {Name: "hour", Kind: codec.Number,
				Value: float64(i % 24)},
			codec.VectorOf("embedding", []float64{float64(i % 5), 1, -2})}}
		for _, name := range []string{"a", "b"} {
			c.Actions = append(c.Actions, codec.Action{Name: name, Features: []codec.Feature{
				{Name: "prompt", Kind: codec.Text, Text: "Answers about " + name}}})
		}
		o := codec.Round{Context: c, Decided: true, Action: row[2], Propensity: .5, Kind: codec.Reward,
			Time: codec.NoTime, OutcomeTime: codec.NoTime}
		if row[3] == "1" {
			o.Value = 1
		}
		b = append(codec.AppendRoundJSON(b, &o), '\n')
	}
	data := writeFile(t, "asked.jsonl", string(b))
	for _, oracle := range []string{"auto", "diagonal"} {
		model := writeFile(t, oracle+".yaml", "name: texts\nactions: [a, b]\nreward: {min: 0, max: 1}\nwindow: 50 "+
			"rounds\nfeatures: {prompt: {text: ngrams}, hour: number, embedding: {vector: 3}}\noracle: "+oracle+"\n")
		log := "embedded:" + filepath.Join(t.TempDir(), "log")
		object(t, "inject", "--json", "--log", log, "--listen", "127.0.0.1:0", "--data", data, "--model", model,
			"--delays", "exp:20")
		v := object(t, "verify", "--log", log, "--json")
		if number(t, v, "differences") != 0 || number(t, v, "decisions.checked") != 300 || need(t, v, "first") != nil {
			t.Errorf("%s: verify: %v", oracle, v)
		}
	}
	out := filepath.Join(t.TempDir(), "asked.parquet")
	if got := execute(t.Context(), "convert", data, "--to", "parquet", "--out", out); !strings.Contains(got.stderr,
		`the feature "embedding" is a vector, which files of Parquet do not have; write --to jsonl`) {
		t.Errorf("to Parquet: %s", got.stderr)
	}
	again := filepath.Join(t.TempDir(), "again.jsonl")
	if got := execute(t.Context(), "convert", data, "--to", "jsonl", "--out", again); got.code != 0 {
		t.Fatal(got.stderr)
	}
	if text, _ := os.ReadFile(again); !strings.Contains(string(text), `"embedding":[4,1,-2]`) {
		t.Errorf("converted: %.300s", text)
	}
}
