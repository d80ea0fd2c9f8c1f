// Package join is the shell of the joiner. It chooses what a cut takes of the inputs, writes the cut
// and what follows from it to the logs, and restores the heart ([loop.Joiner]) from them.
//
// What a joiner does between two cuts depends on clocks, brokers and the moment. None of that counts: the cut says what
// was read, and all else is a function of the logs. So everything here may choose, and nothing here may decide.
package join
