package follow

import (
	"testing"

	"hindsight/pkg/codec"
)

// TestCheckWarm: what an epoch record says that its learner starts from follows from its model and the records
// before it.
func TestCheckWarm(t *testing.T) {
	logged := func(version, warm string) []byte { return []byte("name: m\nversion: " + version + "\n" + warm) }
	first := codec.Epoch{Epoch: 1, Version: 1, Model: logged("1", "")}
	second := codec.Epoch{Epoch: 2, Version: 2, Through: 10, Model: logged("2", "")}
	before := []codec.Epoch{first, second}
	const refit, keep, seven = "warm: refit\n", "warm: keep\n", "warm: 7\n"
	for name, c := range map[string]struct {
		rec    codec.Epoch
		before []codec.Epoch
		want   string
	}{
		"cold":        {codec.Epoch{Version: 3, Model: logged("3", "")}, before, ""},
		"cold, to":    {codec.Epoch{Version: 3, Model: logged("3", ""), WarmTo: 1}, before, "warm_to"},
		"cold, from":  {codec.Epoch{Version: 3, Model: logged("3", ""), WarmFrom: 1}, before, "warm_from"},
		"cold, epoch": {codec.Epoch{Version: 3, Model: logged("3", ""), WarmEpoch: 1}, before, "warm_epoch"},
		"refit": {codec.Epoch{Version: 3, Model: logged("3", refit), Through: 20, WarmFrom: 1, WarmTo: 20},
			before, ""},
		"refit of nothing": {codec.Epoch{Version: 3, Model: logged("3", refit), Through: 20}, before, ""},
		"refit of less": {codec.Epoch{Version: 3, Model: logged("3", refit), Through: 20, WarmTo: 19}, before,
			"warm_to"},
		"refit of an epoch": {codec.Epoch{Version: 3, Model: logged("3", refit), Through: 20, WarmTo: 20, WarmEpoch: 1},
			before, "warm_epoch"},
		"rollback": {codec.Epoch{Epoch: 3, Version: 3, Model: logged("3", seven), WarmFrom: 1, WarmTo: 7, WarmEpoch: 1},
			before, ""},
		"rollback to another": {codec.Epoch{Epoch: 3, Version: 3, Model: logged("3", seven), WarmTo: 8, WarmEpoch: 1},
			before, "warm_to"},
		"rollback of another": {codec.Epoch{Epoch: 3, Version: 3, Model: logged("3", seven), WarmTo: 7, WarmEpoch: 2},
			before, "warm_epoch"},
		"rollback from another": {codec.Epoch{Epoch: 3, Version: 3, Model: logged("3", seven), WarmFrom: 2, WarmTo: 7,
			WarmEpoch: 1}, before, "warm_from"},
		"keep":                {codec.Epoch{Version: 3, Model: logged("3", keep), Continues: 2}, before, ""},
		"keep, a new learner": {codec.Epoch{Version: 3, Model: logged("3", keep)}, before, "continues"},
		"keep, the first":     {codec.Epoch{Version: 3, Model: logged("3", keep)}, nil, ""},
		"keep, one":           {codec.Epoch{Version: 2, Model: logged("2", keep), Continues: 1}, before[:1], ""},
		"keep, none":          {codec.Epoch{Version: 2, Model: logged("2", keep)}, before[:1], "continues"},
		"keep, gone":          {codec.Epoch{Version: 3, Model: logged("3", keep), Continues: 2}, nil, ""},
		"keep, another":       {codec.Epoch{Version: 3, Model: logged("3", keep), Continues: 1}, before, "continues"},
		"keep and warm": {codec.Epoch{Version: 3, Model: logged("3", keep), Continues: 2, WarmTo: 1},
			before, "warm_to"},
		"keep and from": {codec.Epoch{Version: 3, Model: logged("3", keep), Continues: 2, WarmFrom: 1},
			before, "warm_from"},
		"keep and of an epoch": {codec.Epoch{Version: 3, Model: logged("3", keep), Continues: 2, WarmEpoch: 1},
			before, "warm_epoch"},
		"another version": {codec.Epoch{Version: 4, Model: logged("3", "")}, before, "version"},
		"goes on unasked": {codec.Epoch{Version: 3, Model: logged("3", ""), Continues: 2}, before, "continues"},
		"another mode":    {codec.Epoch{Version: 2, Model: logged("2", ""), Continues: 2}, before, ""},
		"another model": {codec.Epoch{Version: 2, Model: logged("2", "window: 9 rounds\n"), Continues: 2},
			before, "model"},
		"another learner": {codec.Epoch{Version: 3, Model: logged("3", "max_features: 9\n"+keep), Continues: 2}, before,
			"model"},
		"no model": {codec.Epoch{Model: []byte("{")}, before, ""},
	} {
		if field, want, got := CheckWarm(&c.rec, c.before); field != c.want || field != "" && want == got {
			t.Errorf("%s: %q, want %q, got %q; must be %q", name, field, want, got, c.want)
		}
	}
}
