package env

import "atoll/quorum"

// AskOne asks one node, and returns its answer, its refusal as an error, or why
// the scope has ended. What isn't an answer of the type asked for is passed
// over.
func AskOne[A Message](e Env, of quorum.NodeID, m Message) (answer A, err error) {
	var refused *Refused
	err = e.Ask([]quorum.NodeID{of}, m, func(_ Conversation, _ quorum.NodeID, got Message) bool {
		switch got := got.(type) {
		case *Refused:
			refused = got
		case A:
			answer = got
		default:
			return false
		}
		return true
	})
	if err == nil && refused != nil {
		err = refused
	}
	return answer, err
}
