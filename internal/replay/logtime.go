package replay

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// timeLayouts are the texts of a time that logs hold; a fraction of a second may follow
// the seconds, and a time without a zone is in UTC.
var timeLayouts = [...]string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05"}

var errTime = errors.New("expected a time: 2013-01-01T11:10:00Z, 2013-01-01 11:10:00 (UTC), or seconds since 1970")

// Times of logs lie well within what nanoseconds since 1970 can say.
const firstYear, lastYear = 1700, 2200

// parseTime reads a time as nanoseconds since 1970.
func parseTime(text string) (int64, error) {
	text = strings.TrimSpace(text)
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return checkTime(text, t)
		}
	}
	seconds, fraction, point := strings.Cut(text, ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || (point && (fraction == "" || strings.Trim(fraction, "0123456789") != "")) {
		return 0, fmt.Errorf("%q: %w", text, errTime)
	}
	nanos, err := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q: %w", text, errTime)
	}
	if strings.HasPrefix(seconds, "-") {
		nanos = -nanos
	}
	return checkTime(text, time.Unix(s, nanos).UTC())
}

func checkTime(text string, t time.Time) (int64, error) {
	if y := t.UTC().Year(); y < firstYear || y > lastYear {
		return 0, fmt.Errorf("%q is in the year %d: %w (not milliseconds)", text, y, errTime)
	}
	return t.UnixNano(), nil
}
