// Command licences lists the licences of everything that is linked into programs, with
// their texts, and fails if one is missing, unknown, or asks for more than to be told.
//
//	go run ./compose/licences ./cmd/... > LICENCES.txt
//
// With --sbom VERSION before the packages it writes the bill of materials instead.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	version := flag.String("sbom", "", "write a bill of materials (CycloneDX 1.6, JSON) of this version of the "+
		"programs")
	if flag.Parse(); flag.NArg() == 0 {
		log.Fatal("usage: licences [--sbom VERSION] PACKAGE...")
	}
	parts, err := collect(".", flag.Args())
	if err != nil {
		log.Fatal(err)
	}
	w := bufio.NewWriter(os.Stdout)
	if *version != "" {
		err = writeBill(w, *version, parts)
	} else {
		err = write(w, parts)
	}
	if err = errors.Join(err, w.Flush()); err != nil {
		log.Fatal(err)
	}
	bad := 0
	for _, p := range parts {
		if err := p.judge(); err != nil {
			log.Print(err)
			bad++
		}
	}
	if bad > 0 {
		log.Fatalf("%d of %d parts have no licence that is known to be free of conditions on this program", bad,
			len(parts))
	}
}

// write writes a table of all parts and then each text once.
func write(w io.Writer, parts []part) error {
	fmt.Fprint(w, "Hindsight is built from these parts of others.\n\n")
	for _, p := range parts {
		fmt.Fprintf(w, "%-60s %-28s %s\n", p.name, p.version, p.ids())
	}
	printed := map[string]string{} // text: where
	for _, p := range parts {
		for _, f := range p.files {
			title := p.name + ": " + f.name
			if where, ok := printed[f.text]; ok {
				fmt.Fprintf(w, "\n==== %s: as in %s\n", title, where)
				continue
			}
			printed[f.text] = title
			fmt.Fprintf(w, "\n==== %s\n\n%s\n", title, f.text)
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}
