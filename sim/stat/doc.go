// Package stat says what the figures of several runs are worth: means with
// confidence intervals, paired differences, percentiles.
//
// A run of the simulator has one seed, and its figures (messages an operation,
// the median latency of reads) are numbers of that seed alone. A [Sample]
// takes one such figure from each seed and tells the mean over all seeds with
// its 95 % confidence [Interval]. Seeds are independent draws, which is what
// Student's t asks for; operations within one run are not, so never put those
// into a Sample: put them into a [Histogram], and a quantile of it into the
// Sample.
//
// Two algorithms, or two settings, are compared under common random numbers:
// both run with the same seeds, and so meet the same delays and faults as far
// as they ask for the same. What differs between seeds then cancels out of the
// difference, and a few seeds show what hundreds wouldn't show in two separate
// means. [Pairs] does that.
//
// A [Histogram] counts durations, or any sizes, in a few kilobytes however
// many there are, and its quantiles are off by less than half a percent.
//
// # The same digits everywhere
//
// Everything streams, and takes its time from nowhere. Sums are made in the
// order of the calls, with +, -, *, / and square roots, each rounded by
// itself: a compiler for another machine may fuse x*y + z into one step that
// rounds once, which the explicit conversions of products forbid. So the same
// figures in the same order give the same bits on every machine. Callers that
// run seeds in parallel add their figures in the order of the seeds.
package stat
