package change

// How a change ends that has nothing to land. An agent that did nothing is not green.
const (
	NothingToDo     = "nothing_to_do"     // its agent changed nothing, and the checks of the base pass, if there are any
	BaseFailsChecks = "base_fails_checks" // its agent changed nothing, and the base fails its own checks
)

// Why a change is blocked (SV-091).
const (
	InteractiveModeFailure = "interactive_mode_failure" // its agent cannot go on by itself
	CredentialMissing      = "credential_missing"       // its agent's key is not there
	BudgetUsedUp           = "budget_used_up"           // its agent may ask its model no more
)
