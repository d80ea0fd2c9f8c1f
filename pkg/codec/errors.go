package codec

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// What can be wrong with bytes. All of it is [ErrCorrupt] too.
var (
	errTruncated = fmt.Errorf("%w: the bytes end too early", ErrCorrupt)
	errTrailing  = fmt.Errorf("%w: bytes follow the record", ErrCorrupt)
	errFormat    = misread("not JSON: want a map, as a JSON object or in MessagePack")
	errCut       = misread("not valid JSON: the bytes end too early")
	errNoValue   = fmt.Errorf("%w: want a value in MessagePack", ErrCorrupt)
	errSyntax    = misread("not valid JSON")
	errSurrogate = fmt.Errorf("%w: half a surrogate pair in a JSON escape", ErrCorrupt)
	errWantMap   = fmt.Errorf("%w: want a map", ErrCorrupt)
	errWantList  = fmt.Errorf("%w: want a list", ErrCorrupt)
	errWantText  = fmt.Errorf("%w: want text", ErrCorrupt)
	errWantBytes = fmt.Errorf("%w: want bytes", ErrCorrupt)
	errWantBool  = fmt.Errorf("%w: want true or false", ErrCorrupt)
	errWantNum   = fmt.Errorf("%w: want a number", ErrCorrupt)
	errWantInt   = fmt.Errorf("%w: want a whole number within int64", ErrCorrupt)
	errRange     = fmt.Errorf("%w: number out of range", ErrCorrupt)
	errDepth     = fmt.Errorf("%w: nested too deeply", ErrCorrupt)
	errTwice     = fmt.Errorf("%w: the key occurs twice", ErrCorrupt)
	errMissing   = fmt.Errorf("%w: the key is missing", ErrCorrupt)
	errOldest    = fmt.Errorf("%w: versions start at 1", ErrCorrupt)
	errFeature   = fmt.Errorf("%w: a feature is a number, text, bool, list of numbers or null", ErrCorrupt)
	errFeatures  = fmt.Errorf("%w: want a map of features or a list of numbers", ErrCorrupt)
	errAction    = fmt.Errorf("%w: an action is a name or a map with a name", ErrCorrupt)
	errActionID  = misread(`an action has a "name", and this one an "id": call the key name`)
	errUnlisted  = fmt.Errorf("%w: the action is not among the propensities", ErrCorrupt)
	errUnequal   = fmt.Errorf("%w: differs from the action's entry in propensities", ErrCorrupt)
	errSlot      = fmt.Errorf("%w: a slot is a name or a map with a name", ErrCorrupt)
	errHalfLaw   = fmt.Errorf("%w: null is the propensity of all actions, or of all but the one that was played",
		ErrCorrupt)
	errModeName = fmt.Errorf("%w: want live, shadow, apprentice, paused or external", ErrCorrupt)
	errBaseline = fmt.Errorf("%w: a baseline is the name of an action, or a map of names with their probabilities",
		ErrCorrupt)
	errFateName  = fmt.Errorf("%w: want observed, imputed, skipped or withdrawn", ErrCorrupt)
	errSilent    = fmt.Errorf("%w: say one of loss, reward, outcomes, withdrawn: true, activated: true", ErrCorrupt)
	errSeveral   = fmt.Errorf("%w: say only one of loss, reward, outcomes, withdrawn, activated", ErrCorrupt)
	errStage     = fmt.Errorf("%w: stages start at 1, and the last one has no number", ErrCorrupt)
	errStageFate = fmt.Errorf("%w: the record of an earlier stage has no fate, reason, loss and outcome", ErrCorrupt)
	errSpec      = fmt.Errorf("%w: only CloudEvents of version 1.0 are read", ErrCorrupt)
	errRow       = fmt.Errorf("%w: want a list of as many values as this version has", ErrCorrupt)
	errNoCRC     = fmt.Errorf("%w: the checksum is missing at the end", ErrCorrupt)
	errCRC       = fmt.Errorf("%w: the bytes do not have their checksum", ErrCorrupt)
	errNoData    = fmt.Errorf("%w: the CloudEvent has no JSON data; data_base64 is not read", ErrCorrupt)
)

// misread is an error that is [ErrCorrupt] without saying so: nothing has damaged what was never a record.
type misread string

func (e misread) Error() string { return string(e) }

// Is implements what [errors.Is] looks for.
func (misread) Is(target error) bool { return target == ErrCorrupt }

// What can be wrong with values.
var (
	errEmpty  = errors.New("is empty")
	errLong   = errors.New("is too long")
	errVector = errors.New("is a list of numbers, which the model must declare: features: " +
		"{NAME: {vector: LENGTH}}")
	errUTF8         = errors.New("is not valid UTF-8")
	errControl      = errors.New("has a control character")
	errNotFinite    = errors.New("is not a finite number")
	errNegative     = errors.New("is negative")
	errPositive     = errors.New("must be at least 1")
	errDuplicate    = errors.New("occurs twice")
	errKind         = errors.New("is of an unknown kind")
	errBool         = errors.New("must be 0 or 1")
	errBoth         = errors.New("are given by name and as a vector: give one")
	errManyFeatures = errors.New("too many features")
	errManyActions  = errors.New("too many actions")
	errManySlots    = fmt.Errorf("too many slots: at most %d are taken", MaxSlots)
	errManyOutcomes = fmt.Errorf("too many names: at most %d are taken", MaxOutcomes)
	errNamed        = errors.New("must be there if, and only if, the outcome is named")
	errOrder        = errors.New("must come in the order of the names, each once")
	errNoActions    = errors.New("an empty list: leave the key out for the model's own list")
	errNoLaw        = errors.New("has no actions")
	errLengths      = errors.New("not one propensity for each action")
	errProbability  = errors.New("must be in [0,1]")
	errGrid         = errors.New("is not a multiple of 2^-53")
	errSum          = errors.New("do not sum to exactly 1")
	errWould        = errors.New("is there only in mode shadow")
	errSharesSum    = errors.New("has probabilities that do not sum to 1")
	errPossible     = errors.New("must be in (0,1]: the action was played")
	errTwoLaws      = errors.New("is given beside propensities: give one")
	errUnsaid       = errors.New("are unknown only in mode external")
	errIndex        = errors.New("is not the index of an action")
	errNeverDrawn   = errors.New("was drawn with probability 0")
	errSource       = errors.New("must be an offset, or -1 for none")
	errUnknown      = errors.New("is not one that is known")
	errNoLoss       = errors.New("must be 0: this fate has no loss")
	errHalfOutcome  = errors.New("partition and offset must both be set or both be -1")
	errNoOutcome    = errors.New("an observed round names its outcome")
	errValueless    = errors.New("must be 0: only losses and rewards have a value")
)

// wrong returns an [Error], or nil if err is nil.
func wrong(event, field string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Event: event, Field: field, Err: err}
}

// Foreign reports whether an error of a Parse function says that the bytes are no record of
// this product, whatever its version: somebody else wrote them, or they are damaged. What a
// later version wrote is not foreign: that is an [ErrVersion].
func Foreign(err error) bool {
	var e *Error
	return errors.As(err, &e) && !errors.Is(err, ErrVersion)
}

// UnlessForeign returns the error of a Parse function, nil if the record is foreign: all readers pass
// over such a record.
func UnlessForeign(err error) error {
	if Foreign(err) {
		return nil
	}
	return err
}

// label returns a name for use in an error: a copy, cut and quoted when it is not fit to print as it is.
func label(name string) string {
	const most = 64
	plain := utf8.ValidString(name)
	for i := 0; plain && i < len(name); i++ {
		plain = name[i] > ' ' && name[i] != 0x7f
	}
	if len(name) > most {
		return strconv.Quote(name[:most]) + "…"
	}
	if !plain || name == "" {
		return strconv.Quote(name)
	}
	return string([]byte(name))
}

// item returns "list[i]".
func item(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }
