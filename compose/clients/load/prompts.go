package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
)

// prompt is a line of a file of prompts: what each language model made of it.
type prompt struct {
	Prompt, Source string
	Arms           map[string]struct{ Reward, Cost float64 } // by model: quality in [0,1], US dollars
}

// routing is a world of prompts.
type routing struct {
	prompts []prompt
	models  []string
	at      map[string]int // by text
}

// usdPerToken are the prices of compose/route/route.yaml: the file has costs, and tokens are reported.
var usdPerToken = map[string]float64{"meta-llama/llama-3.1-8b-instruct": 1e-7, "mistralai/mistral-large-2512": 1.5e-6,
	"google/gemini-2.5-flash": 2.5e-6, "google/gemini-2.5-pro": 1e-5}

func readPrompts(path string) (*routing, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	w := &routing{at: map[string]int{}}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var p prompt
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil || len(p.Arms) == 0 {
			return nil, fmt.Errorf("%s, line %d: expected {\"prompt\", \"source\", \"arms\": {MODEL: {\"reward\", "+
				"\"cost\"}}}: %v", path, len(w.prompts)+1, err)
		}
		w.at[p.Prompt] = len(w.prompts)
		w.prompts = append(w.prompts, p)
	}
	if err := lines.Err(); err != nil || len(w.prompts) == 0 {
		return nil, fmt.Errorf("%s: %d prompts: %v", path, len(w.prompts), err)
	}
	w.models = slices.Sorted(maps.Keys(w.prompts[0].Arms))
	return w, nil
}

func (w *routing) visit() (map[string]any, []string) {
	p := w.prompts[rand.IntN(len(w.prompts))]
	return map[string]any{"prompt": p.Prompt, "source": p.Source}, w.models
}

// respond reports tokens and latency at once, and the quality later. The file has no latencies: they are made up.
func (w *routing) respond(body []byte, action string) ([]map[string]any, [2]float64) {
	var c struct{ Features struct{ Prompt string } }
	i, ok := 0, false
	if json.Unmarshal(body, &c) == nil {
		i, ok = w.at[c.Features.Prompt]
	}
	if !ok {
		return nil, [2]float64{}
	}
	arm := w.prompts[i].Arms[action]
	tokens := arm.Cost / usdPerToken[action]
	return []map[string]any{
		{"outcomes": map[string]any{"tokens": tokens, "latency_ms": 200 + 10*tokens}},
		{"outcomes": map[string]any{"quality": arm.Reward}},
	}, [2]float64{arm.Reward, arm.Cost}
}

func (w *routing) line(sums [2]float64, n float64) string {
	return fmt.Sprintf("quality %.3f and %.6f US dollars a request", sums[0]/n, sums[1]/n)
}
