package loop

import "hindsight/pkg/codec"

// unread returns how much of the parsed context nobody reads.
func (r *reader) unread() int {
	n := r.keys + r.unlisted
	if r.idleUnit() {
		n++
	}
	return n
}

// idleUnit reports whether the parsed context has a unit that the model does not ask for.
func (r *reader) idleUnit() bool {
	return r.rules.Sticky == 0 && (r.ctx.Unit != "" || r.ctx.CheckUnit() != nil)
}

// Outside names the features of a context whose values lie outside the range that the rules
// state. [Result] has the number.
func Outside(rules *Rules, raw []byte) (names codec.Names) {
	r := newReader(rules)
	r.beyond = &names
	if r.parseAgain(raw) == nil {
		r.known(r.ctx.Features)
	}
	return names
}

// Unread tells what nobody reads of a context that can be parsed: features that the rules do
// not list, if they list any, and keys that no context and no action has. What only some
// learners read counts as read. It takes memory and time: [Result] has the number.
func Unread(rules *Rules, raw []byte) (n int, names codec.Names) {
	if rules == nil {
		rules = &Rules{} // not known: any feature is read
	}
	r := newReader(rules)
	r.strays = &names
	if r.parseAgain(raw) != nil {
		return 0, codec.Names{}
	}
	if r.known(r.ctx.Features); r.idleUnit() {
		names.Add("unit")
	}
	return r.unread(), names
}
