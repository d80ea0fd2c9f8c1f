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

// CauseLost is the cause of an epoch that a joiner began in place of one whose record is lost.
const CauseLost = "lost"

// CauseLostShare is [CauseLost] of an epoch whose ids the rule of promotion may share.
const CauseLostShare = CauseLost + ": the rule of promotion may share the ids"

// Lost reports whether the epoch began in place of one whose record is lost.
func (x *Epoch) Lost() bool { return x.Cause == CauseLost || x.Cause == CauseLostShare }

// CauseTaught is the cause of an epoch in which a learner is taught what another system did. Nobody is answered in it.
const CauseTaught = "taught"

// alarmCause begins the cause of an epoch that the guard began; the feedback at which it alarmed follows. A key of
// its own would change the bytes of snapshots, which hold the record as the program that writes them knows it.
const alarmCause = guardCause + " worse than the baseline at feedback "

// guardCause begins every cause that names the guard.
const guardCause = "guard:"

// ByGuard reports whether the record says that the guard began the epoch.
func (x *Epoch) ByGuard() bool { return strings.HasPrefix(x.Cause, guardCause) }

// AlarmCause is the cause of an epoch that the guard begins when it alarms at a feedback.
func AlarmCause(feedback int64) string { return alarmCause + strconv.FormatInt(feedback, 10) }

// Alarm returns the feedback at which the guard alarmed and began the epoch; 0: it did not begin it.
func (x *Epoch) Alarm() int64 {
	text, ok := strings.CutPrefix(x.Cause, alarmCause)
	n, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return 0
	}
	return n
}

// ruleCause begins every cause that names the rule of promotion.
const ruleCause = "promote:"

// ByRule reports whether the record says that the rule of promotion began the epoch.
func (x *Epoch) ByRule() bool { return strings.HasPrefix(x.Cause, ruleCause) }

// Shares reports whether the share of the rule of promotion is at work in the epoch.
func (x *Epoch) Shares() bool { return x.ByRule() || x.Cause == CauseLostShare }

// PromotionCause is the cause of an epoch that the rule of promotion begins when it holds at a feedback.
func PromotionCause(feedback int64) string {
	return ruleCause + " the rule held at feedback " + strconv.FormatInt(feedback, 10)
}
