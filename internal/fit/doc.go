// Package fit builds a finite class F of functions from logged rounds, for the Hedge oracle: ridge and logistic
// regressions and small trees, each fitted to a bootstrap sample of the rows over some of the columns with some
// regularisation, so that they err differently. Functions that predict nearly alike are kept once. What is held out
// says how good each is, and how many of them it does not refute.
//
// A row of a log that knows the loss of the action played only counts with its importance weight 1/p for that action:
// so the fit is one to the losses of all actions under the contexts of the log, not to what the logging policy liked.
//
// Functions are of named actions, one row of coefficients or one loss a leaf for each, or, where actions bring
// features, shared by all actions: over the context, the features of the action, and their products.
//
// Everything is a pure function of the data and a seed.
package fit
