// Package words writes numbers for people, the same wherever a command, a table or a page shows one: figures with as
// many digits as tell something, counts with commas, shares in percent, values with their standard errors.
package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Digits writes a figure with four significant digits, or all before the point.
func Digits(x float64) string { return Figure(x, 4) }

// Short writes an error with two significant digits.
func Short(x float64) string { return Figure(x, 2) }

// Figure writes a figure with so many significant digits, or all before the point; – if there is none.
func Figure(x float64, significant int) string {
	switch abs := math.Abs(x); {
	case math.IsNaN(x):
		return "–"
	case x == 0:
		return "0"
	case abs >= 1e15 || abs < 1e-5:
		return strconv.FormatFloat(x, 'g', significant, 64)
	case abs >= 1000:
		return Count(int64(math.Round(x)))
	default:
		whole := int(math.Floor(math.Log10(abs))) + 1
		return strconv.FormatFloat(x, 'f', max(0, significant-whole), 64)
	}
}

// Count writes a whole number with commas.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Percent writes a share.
func Percent(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x < 0.001:
		return "<0.1%"
	}
	return strconv.FormatFloat(100*x, 'f', 1, 64) + "%"
}

// Share writes a count with its percentage.
func Share(n, of int64) string {
	if n == 0 || of == 0 {
		return Count(n)
	}
	return Count(n) + " (" + Percent(float64(n)/float64(of)) + ")"
}

// RoundedAway is what sums of equal terms leave behind: an error below it is none.
const RoundedAway = 1e-12

// WithError writes a value with as many decimals as its standard error has, two of which count.
func WithError[F ~float64](value, se F) string {
	v, s := float64(value), float64(se)
	if s < RoundedAway {
		if math.Abs(v) < RoundedAway {
			v = 0
		}
		return Figure(v, 3)
	}
	if math.IsNaN(s) {
		return Figure(v, 3)
	}
	decimals := max(0, 1-int(math.Floor(math.Log10(s))))
	if decimals > 9 || max(math.Abs(v), s) >= 1e15 {
		return Figure(v, 3) + "±" + Short(s)
	}
	return fmt.Sprintf("%.*f±%.*f", decimals, v, decimals, s)
}

// NoBreak is a space at which no line is broken.
const NoBreak = "\u00a0"

// Items formats a list that may be broken after commas only.
func Items(format string, args ...any) string {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), " ", NoBreak)
	return strings.ReplaceAll(text, ","+NoBreak, ", ")
}
