package clients

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hindsight/compose/schemas"
	"hindsight/internal/testkit"
	"hindsight/pkg/stream/kafkatest"
)

// keyTypes returns the keys of a record by its schema, with the types of columns that hold them.
func keyTypes(t *testing.T, topic, record, text string) map[string]string {
	t.Helper()
	b, err := schemas.Files.ReadFile(topic + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Defs map[string]struct{ Properties map[string]map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{"type": text}
	for key, p := range s.Defs[record].Properties {
		if kinds, ok := p["type"].([]any); ok { // any column may be null
			p["type"] = kinds[0]
		}
		switch {
		case key == "context" || key == "outcomes" || p["type"] == "string" || p["enum"] != nil: // objects as text
			out[key] = text
		case p["type"] == "integer":
			out[key] = "BIGINT"
		case p["type"] == "number":
			out[key] = "DOUBLE"
		case p["type"] == "array":
			out[key] = "ARRAY<DOUBLE>"
		case p["type"] == "object":
			out[key] = "MAP<" + text + ", DOUBLE>"
		default:
			t.Errorf("%s.%s: no column holds %v", record, key, p)
		}
	}
	return out
}

var (
	tableSQL  = regexp.MustCompile("(?s)CREATE TABLE `(decision|feedback)_records` \\((.*?)\n\\) WITH \\(")
	columnSQL = regexp.MustCompile("(?m)^  `([a-z_]+)` ([A-Z]+(?:<[A-Z, ]+>)?)(?: PRIMARY KEY)?,?$")
)

// columnsOf returns the columns of the tables of a page's statements, by what is in them.
func columnsOf(t *testing.T, sql string) map[string]map[string]string {
	t.Helper()
	out := map[string]map[string]string{}
	for _, m := range tableSQL.FindAllStringSubmatch(sql, -1) {
		out[m[1]] = map[string]string{}
		for _, c := range columnSQL.FindAllStringSubmatch(m[2], -1) {
			out[m[1]][c[1]] = c[2]
		}
	}
	return out
}

// TestTables: the tables on the page on Kafka have each key of decisions and feedback, in its type, and
// pass over control records.
func TestTables(t *testing.T) {
	for mark, text := range map[string]string{"flink": "STRING", "ksqldb": "VARCHAR"} {
		sql := testkit.Block(t, "../../docs/kafka-json.md", mark)
		checkColumns(t, mark, columnsOf(t, sql), text)
		if strings.Count(sql, "WHERE `type` IS NULL") != 2 {
			t.Errorf("%s: the tables do not leave out control records", mark)
		}
	}
}

func checkColumns(t *testing.T, dialect string, got map[string]map[string]string, text string) {
	t.Helper()
	for record, topic := range map[string]string{"decision": "decisions", "feedback": "feedback"} {
		want := keyTypes(t, topic, record, text)
		if !maps.Equal(got[record], want) {
			for _, key := range slices.Sorted(maps.Keys(want)) {
				if got[record][key] != want[key] {
					t.Errorf("%s: column %s of %s is %q, want %q", dialect, key, topic, got[record][key], want[key])
				}
			}
			t.Errorf("%s: %s has the columns %v", dialect, topic, got[record])
		}
	}
}

var tight = strings.NewReplacer("< ", "<", " >", ">")

// TestKafkaRealFlinkSQL: Flink's own parser reads the statements as they are meant.
func TestKafkaRealFlinkSQL(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tables.sql")
	if err := os.WriteFile(file, []byte(testkit.Block(t, "../../docs/kafka-json.md", "flink")), 0o600); err != nil {
		t.Fatal(err)
	}
	statements, columns := []string{}, map[string]map[string]string{"decision": {}, "feedback": {}}
	for _, line := range strings.Split(strings.TrimSpace(kafkatest.Program(t, "testdata/FlinkColumns.java", file)), "\n") {
		switch f := strings.Split(line, "\t"); {
		case len(f) == 2:
			statements = append(statements, f[1])
		case len(f) == 3:
			columns[strings.TrimSuffix(f[0], "_records")][f[1]] = tight.Replace(f[2])
		}
	}
	want := []string{"SqlCreateTable", "SqlCreateView", "SqlCreateTable", "SqlCreateView", "SqlSelect"}
	if !slices.Equal(statements, want) {
		t.Errorf("Flink reads %v, want %v", statements, want)
	}
	checkColumns(t, "flink", columns, "STRING")
}
