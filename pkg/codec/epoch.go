package codec

import (
	"bytes"
	"strconv"
	"strings"
)

const modeKey = "mode: " // of the model file

// LoggedModel returns the model as the log has it: the mode is the last line, where programs that have no field
// for it read it. A live mode has a line only if somebody asked for it.
func (x *Epoch) LoggedModel() []byte {
	if x.Mode == Live && x.Cause == "" {
		return x.Model
	}
	return append(bytes.Clone(x.Model), modeKey+x.Mode.String()+"\n"...)
}

// splitModel takes the mode out of a model from the log.
func (x *Epoch) splitModel() {
	for i, name := range Modes() {
		if model, ok := bytes.CutSuffix(x.Model, []byte(modeKey+name+"\n")); ok {
			x.Model, x.Mode = model, Mode(i)
			return
		}
	}
}

// GuardCause begins the cause of an epoch that the guard began; the feedback at which it alarmed follows.
const GuardCause = "guard: worse than the baseline at feedback "

// readCause reads Raised from a record of before that key, which has it in the cause alone.
func (x *Epoch) readCause() {
	if n, ok := strings.CutPrefix(x.Cause, GuardCause); ok && x.Raised == 0 {
		x.Raised, _ = strconv.ParseInt(n, 10, 64)
	}
}
