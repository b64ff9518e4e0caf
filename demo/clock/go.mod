module example.org/clock

go 1.22
