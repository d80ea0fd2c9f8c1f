// Package deployed reads the files under compose/ that start the programs: the stack for Compose, the systemd units and
// the Kubernetes manifest. Tests of the programs hold by [Check] that the flags written there are theirs.
package deployed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Command is one command line of a deployment.
type Command struct {
	File string   // its base name
	Name string   // of the service, unit or container
	Args []string // Args[0] is the program, without its folder
}

// Commands returns all command lines in the files of a folder, in a fixed order.
func Commands(dir string) (all []Command, err error) {
	for _, read := range []func(string) ([]Command, error){composed, units, containers} {
		found, err := read(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// Check returns what parse says against the arguments of the commands in the files of a folder that start a program, of
// which there must be so many at least; and whether parse finds a flag that nobody has.
func Check(dir, program string, least int, parse func(args []string) error) error {
	all, err := Commands(dir)
	if err != nil {
		return err
	}
	ours := slices.DeleteFunc(all, func(c Command) bool { return c.Args[0] != program })
	if len(ours) < least {
		return fmt.Errorf("only %d commands start %s: %v", len(ours), program, ours)
	}
	var wrong []error
	for _, c := range ours {
		if err := parse(c.Args[1:]); err != nil {
			wrong = append(wrong, fmt.Errorf("%s, %s: %w", c.File, c.Name, err))
		}
	}
	if parse([]string{"--no-flag-has-this-name"}) == nil {
		wrong = append(wrong, errors.New("a flag that nobody has is accepted"))
	}
	return errors.Join(wrong...)
}

// CheckVariables returns which variables that the systemd units of a program set, or show
// how to set in comments, are not known. There must be so many at least.
func CheckVariables(dir, program string, least int, known func(name string) bool) error {
	var wrong []error
	n := 0
	err := eachUnit(dir, func(file, text string) {
		if !strings.Contains(text, "\nExecStart=/usr/local/bin/"+program+" ") {
			return
		}
		for line := range strings.Lines(text) {
			set, ok := strings.CutPrefix(strings.TrimPrefix(line, "#"), "Environment=")
			if !ok {
				continue
			}
			for assignment := range strings.FieldsSeq(set) {
				name, _, _ := strings.Cut(assignment, "=")
				if n++; !known(name) {
					wrong = append(wrong, fmt.Errorf("%s sets %s, which is not known", file, name))
				}
			}
		}
	})
	if err == nil && n < least {
		err = fmt.Errorf("the units of %s set %d variables only", program, n)
	}
	return errors.Join(append(wrong, err)...)
}

func composed(dir string) (out []Command, err error) {
	const file = "compose.yaml"
	var stack struct {
		Services map[string]struct{ Command []string }
	}
	if err := readYAML(dir, file, func(d *yaml.Decoder) error { return d.Decode(&stack) }); err != nil {
		return nil, err
	}
	for name, s := range stack.Services {
		if len(s.Command) > 0 {
			out = append(out, Command{file, name, s.Command})
		}
	}
	slices.SortFunc(out, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// units reads ExecStart of the systemd units. Specifiers stay as they are.
func units(dir string) (out []Command, err error) {
	err = eachUnit(dir, func(name, text string) {
		for line := range strings.Lines(text) {
			if exec, ok := strings.CutPrefix(line, "ExecStart="); ok {
				args := strings.Fields(exec)
				args[0] = filepath.Base(args[0])
				out = append(out, Command{name, name, args})
			}
		}
	})
	return out, err
}

// eachUnit reads the systemd units of a folder.
func eachUnit(dir string, do func(name, text string)) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.service"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		do(filepath.Base(path), string(text))
	}
	return nil
}

func containers(dir string) (out []Command, err error) {
	const file = "kubernetes.yaml"
	err = readYAML(dir, file, func(d *yaml.Decoder) error {
		for {
			var object struct {
				Spec struct {
					Template struct {
						Spec struct {
							Containers []struct {
								Name          string
								Command, Args []string
							}
						}
					}
				}
			}
			if err := d.Decode(&object); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			for _, c := range object.Spec.Template.Spec.Containers {
				out = append(out, Command{file, c.Name, append(c.Command, c.Args...)})
			}
		}
	})
	return out, err
}

func readYAML(dir, file string, decode func(*yaml.Decoder) error) error {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return err
	}
	if err := decode(yaml.NewDecoder(bytes.NewReader(text))); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
