package codec

// Newest is the newest version of any record that this build writes and reads. A record
// says the least version whose readers understand it: [Version], unless it says something
// that an older program must not pass over.
const Newest = saysMore

// saysMore is the version of a record that says what an older program must not pass over: it would take a record of
// one stage for a round's feedback, or an outcome with names for one that says nothing; decide anew what another
// system has decided; draw for each context of a unit; or decide one action for all slots.
const saysMore = 4

// cutMarkVersion is the version of a mark of a joiner that logs its cuts. Nothing in it tells an
// older joiner which rounds wait.
const cutMarkVersion = 4

// epochVersion returns the version of an epoch's record. An older program that passed
// over Continues would begin a new learner.
func epochVersion(x *Epoch) int {
	if x.Continues > 0 {
		return 2
	}
	return Version
}
