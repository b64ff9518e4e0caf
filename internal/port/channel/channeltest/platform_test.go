package channeltest_test

import (
	"testing"

	"sallyport/internal/port/channel/channeltest"
)

func TestAScriptedPlatformKeepsWhatChannelsPromise(t *testing.T) {
	channeltest.Run(t, func(*testing.T) channeltest.Platform { return channeltest.NewScripted().Counting() })
}

func TestAForgetfulPlatformSaysWhatIsLost(t *testing.T) {
	channeltest.Run(t, func(*testing.T) channeltest.Platform { return channeltest.NewScripted().Forgetful() })
}
