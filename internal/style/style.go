// Package style is the one look of the live page, of reports and of pictures: the
// style sheet, its colours, and the script that draws charts.
package style

import (
	"embed"
	"image/color"
	"regexp"
	"strconv"
)

//go:embed assets
var assets embed.FS

// Library names the charts' library: uPlot, MIT licence, from the npm registry; with the SHA-256 of its script.
const (
	Library       = "uPlot 1.6.32"
	folder        = "uPlot-1.6.32/"
	LibrarySHA256 = "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"
)

// Parts of a page. They need nothing from elsewhere.
var (
	Sheet   = read(folder+"uPlot.min.css") + read("look.css")
	Script  = read("fine.js") + read(folder+"uPlot.iife.min.js") + read("chart.js")
	Licence = read(folder + "LICENSE")
)

func read(name string) string {
	b, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // not reached: it is embedded
	}
	return string(b)
}

// Palette returns the colours of series on white, which the style sheet names --s0 to --s7.
// They follow Okabe and Ito's, which colour-blind readers can tell apart.
func Palette() []color.RGBA {
	var out []color.RGBA
	for _, m := range regexp.MustCompile(`--s\d: #([0-9a-f]{6})`).FindAllStringSubmatch(read("look.css"), series) {
		v, _ := strconv.ParseUint(m[1], 16, 32) // six hexadecimal digits always parse
		out = append(out, color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff})
	}
	return out
}

// series is how many colours there are; those of the dark follow those on white.
const series = 8
