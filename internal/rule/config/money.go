package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Money is an amount in millionths, of whatever money the owner counts in.
type Money int64

// moneyForm is how an amount is written: at most six digits behind the point.
const moneyForm = `^(0|[1-9][0-9]{0,8})(\.[0-9]{1,6})?$`

// MoneyMax is the largest amount.
const MoneyMax = Money(999_999_999_999_999)

func (m *Money) parse(text string) error {
	if !match(moneyForm, text) {
		return fmt.Errorf("%q is no amount; write it like 1.25, with at most six digits behind the point", text)
	}
	whole, part, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole+(part + "000000")[:6], 10, 64)
	if err != nil {
		return fmt.Errorf("%q is too large", text)
	}
	if n == 0 {
		return fmt.Errorf("%q allows nothing; leave the key out to set no limit", text)
	}
	*m = Money(n)
	return nil
}

// number marks a word that is written as a number.
func (Money) number() {}

func (m Money) String() string {
	text := fmt.Sprintf("%d.%06d", m/1_000_000, m%1_000_000)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
