package scenario

import "errors"

// Run runs a plan to its end, or to the first promise that is broken. The
// error says that the plan makes no sense.
func Run(p Plan, o Options) (Result, error) {
	if err := p.Check(); err != nil {
		return Result{}, err
	}
	return Result{}, errors.New("scenario: under construction")
}
