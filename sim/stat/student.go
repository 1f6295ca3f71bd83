package stat

// studentTable holds the two-sided 95 % quantiles of Student's t distribution
// for 1, 2, ... degrees of freedom: t such that |T| <= t has the probability
// 0.95.
var studentTable = [...]float64{
	12.7062047361747, 4.302652729749464, 3.18244630528371, 2.776445105197794, 2.570581835636316,
	2.44691185114497, 2.364624251592785, 2.306004135204167, 2.262157162798206, 2.228138851986275,
	2.20098516009164, 2.178812829667229, 2.160368656462793, 2.144786687917804, 2.131449545559776,
	2.119905299221255, 2.109815577833317, 2.100922040241038, 2.09302405440831, 2.085963447265865,
	2.07961384472768, 2.073873067904026, 2.068657610419049, 2.063898561628026, 2.059538552753298,
	2.055529438642873, 2.051830516480286, 2.048407141795245, 2.045229642132704, 2.042272456301238,
}

// The coefficients of 1, 1/n, 1/n², ... in the expansion of the same quantile
// for n degrees of freedom: the Cornish-Fisher expansion (Abramowitz & Stegun,
// Handbook of Mathematical Functions, 26.7.5) at the normal quantile 1.95996...
// Beyond the table its error is below 3e-8, a millionth of what anybody prints.
const (
	student0 = 1.9599639845400542
	student1 = 2.3722712302985628
	student2 = 2.8224986157396118
	student3 = 2.5558496795077233
	student4 = 1.5895340533938235
)

// Student returns the two-sided 95 % quantile of Student's t distribution with
// n degrees of freedom, n >= 1: a mean of n+1 independent, roughly normal
// figures is off by more than this many standard errors once in twenty times.
func Student(n int) float64 {
	if n < 1 {
		panic("stat: Student's t needs a degree of freedom")
	}
	if n <= len(studentTable) {
		return studentTable[n-1]
	}
	v := float64(n)
	t := student3 + student4/v
	t = student2 + t/v
	t = student1 + t/v
	return student0 + t/v
}
