package codec

// Newest is the newest version of any record that this build writes and reads. A record
// says the least version whose readers understand it: [Version], unless it says something
// that an older program must not pass over.
const Newest = namedVersion

// namedVersion is the version of a record that names outcomes, stages or prices. An older program that passed
// over them would take a record of one stage for a round's feedback, or an outcome for one that says nothing.
const namedVersion = 4

// assignedVersion is the version of a record of what another system decided. An older program would decide anew.
const assignedVersion = 4

// unitVersion is the version of a record that names a unit. An older program would draw for each of its contexts.
const unitVersion = 4

// slotsVersion is the version of a context with slots. An older program would decide one action.
const slotsVersion = 4

// markVersion is the version of a mark of the joiner with long lists ([Position]). An older
// program that passed over them would take rounds and outcomes that are done for such as wait.
const markVersion = 3

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
