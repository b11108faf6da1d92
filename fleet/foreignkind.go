package fleet

import (
	"context"
	"errors"
)

// kindNames are the names of the kinds of limits, by their scripts.
var kindNames = map[string]string{
	"tokenbucket": "token-bucket", "fixedwindow": "fixed-window", "slidingwindow": "sliding-window",
	"slidinglog": "sliding-log", "throttle": "cl.throttle",
}

// kindsByNumber are the scripts of the kinds by the numbers of kind.lua. 0 is unknown.
var kindsByNumber = []string{"", "tokenbucket", "fixedwindow", "slidingwindow", "slidinglog", "throttle"}

var kindScript = newScript("kind")

// nameKinds returns err. But if it says that one of the keys holds a foreign value, and a limit of
// another kind has written that, nameKinds returns an error that names both kinds. The keys are
// those of limits with the given scripts.
func (ns namespace) nameKinds(ctx context.Context, err error, keys, scripts []string) error {
	if !errors.Is(err, ErrForeign) {
		return err
	}
	found, askErr := ns.link.eval(ctx, kindScript, keys, nil)
	if askErr != nil || len(found) != len(keys) {
		return err
	}
	for i, number := range found {
		if !isWithin(number, 1, int64(len(kindsByNumber)-1)) {
			continue
		}
		if writer := kindsByNumber[number]; writer != scripts[i] {
			return &StoreError{link: ns.link.name, Fault: faultForeign, kinds: [2]string{kindNames[writer], kindNames[scripts[i]]}}
		}
	}
	return err
}
