package scan

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// NoTime is a time that the log does not say.
const NoTime int64 = math.MinInt64

// Times lie well within what nanoseconds since 1970 can say.
const firstYear, lastYear = 1700, 2200

// ParseTime reads a time of RFC 3339, or one that lacks the zone (UTC) or has a space for T, as ns since 1970.
func ParseTime(text string) (int64, error) {
	if ns, ok := fastTime(text); ok {
		return ns, nil
	}
	for _, layout := range [...]string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00",
		"2006-01-02 15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			if y := t.UTC().Year(); y < firstYear || y > lastYear {
				break
			}
			return t.UnixNano(), nil
		}
	}
	return NoTime, fmt.Errorf("%q is not a time as 2021-02-04T16:31:29.246Z, of the years 1700 to 2200", text)
}

var errTime = errors.New("expected a time: 2013-01-01T11:10:00Z, 2013-01-01 11:10:00 (UTC), or seconds since 1970")

// ParseTimeOrSeconds is ParseTime for cells of tables, which may hold seconds since 1970.
func ParseTimeOrSeconds(text string) (int64, error) {
	text = strings.TrimSpace(text)
	if ns, err := ParseTime(text); err == nil {
		return ns, nil
	}
	seconds, fraction, point := strings.Cut(text, ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	nanos, ferr := strconv.ParseUint((fraction + "000000000")[:9], 10, 64)
	if err != nil || ferr != nil || point && strings.Trim(fraction+"x",
		"0123456789") != "x" || point && fraction == "" {
		return 0, fmt.Errorf("%q: %w", text, errTime)
	}
	if strings.HasPrefix(seconds, "-") {
		nanos = -nanos
	}
	t := time.Unix(s, int64(nanos)).UTC()
	if y := t.Year(); y < firstYear || y > lastYear {
		return 0, fmt.Errorf("%q is in the year %d: %w (not milliseconds)", text, y, errTime)
	}
	return t.UnixNano(), nil
}

// fastTime reads YYYY-MM-DDThh:mm:ss[.fraction]Z of the years 1970 to 2200 whose fields are in range.
func fastTime(s string) (int64, bool) {
	if len(s) < 20 || len(s) > 30 || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' ||
		s[16] != ':' || s[len(s)-1] != 'Z' {
		return 0, false
	}
	y, ok0 := digitsOf(s[0:4])
	mo, ok1 := digitsOf(s[5:7])
	day, ok2 := digitsOf(s[8:10])
	h, ok3 := digitsOf(s[11:13])
	mi, ok4 := digitsOf(s[14:16])
	sec, ok5 := digitsOf(s[17:19])
	if !(ok0 && ok1 && ok2 && ok3 && ok4 && ok5) || y < 1970 || y > 2200 ||
		mo < 1 || mo > 12 || day < 1 || day > 28 || h > 23 || mi > 59 || sec > 59 {
		return 0, false
	}
	nanos := int64(0)
	if fraction := s[19 : len(s)-1]; fraction != "" {
		n, ok := digitsOf(fraction[1:])
		if fraction[0] != '.' || !ok || len(fraction) < 2 {
			return 0, false
		}
		nanos = n
		for range 10 - len(fraction) {
			nanos *= 10
		}
	}
	// Days since 1970 of the civil calendar, by Howard Hinnant's chrono algorithms.
	if mo <= 2 {
		y--
	}
	era := y / 400
	yoe := y - era*400
	doy := (153*((mo+9)%12)+2)/5 + day - 1
	days := era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 719468
	return (days*86400+h*3600+mi*60+sec)*1_000_000_000 + nanos, true
}

func digitsOf(s string) (n int64, ok bool) {
	for i := range len(s) {
		if s[i]-'0' > 9 {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}

// AppendTime appends a time as RFC 3339 in UTC with the digits that it needs; without a time it appends nothing.
func AppendTime(dst []byte, ns int64) []byte {
	if ns == NoTime {
		return dst
	}
	return time.Unix(0, ns).UTC().AppendFormat(dst, time.RFC3339Nano)
}
