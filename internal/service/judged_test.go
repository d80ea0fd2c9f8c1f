package service

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"hindsight/internal/ledger"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/verify"
)

// TestPostedCandidates: a list that is posted makes the next version of the model, which goes on with the learner and
// the mode, judges the policies of a file, verifies, and is the file that the next start needs.
func TestPostedCandidates(t *testing.T) {
	const kind = "application/json"
	path := filepath.Join(t.TempDir(), "model.yaml")
	write := func(path, text string) {
		t.Helper()
		must(t, 0, os.WriteFile(path, []byte(text), 0o600))
	}
	list := func(then string) {
		write(filepath.Join(filepath.Dir(path), "lists"), `{"hindsight_policies":1,"actions":["a","b"]}`+"\n"+
			`{"rules":[{"if":{"x":1},"then":"`+then+`"},{"then":"a"}]}`)
	}
	write(path, "name: m\nwindow: 3 rounds\ncertificate: none\n")
	synctest.Test(t, func(t *testing.T) {
		x := newRefitted(t)
		source, err := modelfile.Load(path)
		must(t, 0, err)
		c := x.control
		c.Rejudge = modelfile.Rejudge(path)
		x.config.Build, x.config.Source = model.Epoch, source
		stop := x.run(x.system)
		synctest.Wait()
		x.ask()
		post := func(body string, code int, want string) (page ModePage) {
			t.Helper()
			got, text := send(c.JudgeOthers(nil), kind, body)
			if got != code || !strings.Contains(text, want) {
				t.Errorf("%s: %d %s, want %d %s", body, got, text, code, want)
			}
			_ = json.Unmarshal([]byte(text), &page) // an error has another form
			return page
		}
		post(`{"candidates":["uniform",{"policies":"lists"}]}`, 409, "no such file")
		list("b")
		post(`{}`, 409, "candidates: expected none or a list of 1 to 16 policies")
		post(`["uniform"]`, 400, "JSON object")
		post(`{"candidates":["uniform"],"promote":{"of":"learner"}}`, 409, "promote: learner is not in candidates")
		_, err = c.Switch(t.Context(), 1, "")
		must(t, 0, err)
		page := post(`{"candidates":["uniform",{"policies":"lists"}],"promote":{"of":"uniform"}}`, 200,
			"admin: candidates")
		if page.Version != 2 || page.Epoch != 3 || page.Learner != 1 || page.Mode != "shadow" {
			t.Errorf("%+v", page)
		}
		for range 6 {
			x.ask()
		}
		judged := func() map[string]ledger.Estimate {
			all := map[string]ledger.Estimate{}
			for _, e := range c.Judged().Candidates {
				all[e.Policy] = e
			}
			return all
		}
		if all := judged(); len(all) != 2 || all["policies:lists"].Rounds < 3 || all["uniform"].Rounds < 3 {
			t.Errorf("%+v", all)
		}
		list("a") // another file: the evidence begins anew, the learner goes on
		page = post(`{"candidates":[{"policies":"lists"},"uniform"]}`, 200, `"version": 3`)
		if page.Learner != 1 || judged()["uniform"].Rounds != 0 || c.Judged().Promote == nil {
			t.Errorf("%+v, %+v", page, judged())
		}
		x.ask()
		stop()
		write(path, page.Model)
		x.config.Source, err = modelfile.Load(path)
		must(t, 0, err)
		x.config.Metrics = nil
		stop = x.run(x.system)
		synctest.Wait()
		x.ask()
		if all := judged(); len(all) != 2 || c.Judged().Epoch != page.Epoch {
			t.Errorf("started with the posted model: %+v", c.Judged())
		}
		stop()
		v, err := verify.Run(t.Context(), verify.Config{Log: x.log, Name: "m", Seed: x.config.Seed, Build: model.Epoch})
		if err != nil || v.ExitCode() != verify.Identical {
			t.Errorf("%v: %+v", err, v)
		}
	})
}
