// SPDX-License-Identifier: GPL-2.0
/*
 * Computes 95 % intervals for the values of a table of functions.
 *
 * A metric is a ratio of totals over windows, R = sum y_i / sum x_i, whose
 * standard error s is that of a ratio estimator (Cochran, Sampling Techniques,
 * 2.11). Chance decides where windows lie: the interval covers the value that
 * the same recording would have with infinitely many windows.
 *
 * - s is itself estimated, of n windows: Student's t with n - 1 degrees of
 *   freedom takes the place of 1.96.
 * - R +- t s reaches below 0 (a share: beyond 100 %), and misses the truth too
 *   often if events are few, because s is small if R happens to be small. If
 *   s^2 is in proportion to the mean, as it is for numbers of events, the score
 *   interval does neither. It is symmetric on the scale of log R, or of the
 *   logit of a share, with half of its width 2 asinh(t s / 2 R), or 2 asinh(t s
 *   / 2 R (1 - R)) (Newcombe, Logit confidence intervals and the inverse sinh
 *   transformation, The American Statistician 55, 2001). With many events it is
 *   R +- t s.
 * - Events may exist that no window has seen: with 95 % certainty no more than
 *   3 of n windows would see them (rule of three: Hanley and Lippman-Hand, JAMA
 *   249, 1983). So the interval of a rate reaches at least up to the rate with 3 more
 *   windows of events. Such a window has the mean number of events of windows with
 *   any, of the function or of all, whichever is larger. The interval reaches at least
 *   down to the rate with 3 more windows of the divisor. It is never narrower than
 *   3 events more or less. If no event was seen, this is all that is known.
 * - If few windows hold most of the events, s is small whenever the largest of them
 *   were missed. So the interval of a rate reaches farther, see stretch().
 *
 * Samples of an event that samples itself are independent draws. Their intervals are
 * exact if all samples have the same period (Clopper and Pearson, Biometrika 26,
 * 1934). Else they are those of the number of equal samples with the same standard
 * error (Korn and Graubard, Survey Methodology 24, 1998), but not of more than there
 * were if each had the usual period: the first periods of a frequency are short, and
 * say little about what was missed.
 */
#include <float.h>
#include <math.h>
#include <linux/kernel.h>

#include "functions.h"

const struct fn_value fn_undefined = { .value = NAN, .low = NAN, .high = NAN, .error = NAN };

#define NORMAL_95	1.959963984540054
/* -log(0.05) */
#define RULE_OF_THREE	2.995732273553991
/* Above this, Student's t is replaced by the normal distribution. */
#define MAX_FREEDOM	1e5

/* 1 + d1 / (1 + d2 / (1 + ...)) of Abramowitz and Stegun 26.5.8, by Lentz' method. */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 0, result = 1;

	for (int i = 1; i < 10000; i++) {
		int m = i / 2;
		double top;

		if (i % 2)
			top = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		else
			top = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		d = 1 / (1 + top * d);
		c = 1 + top / c;
		result *= c * d;
		if (fabs(c * d - 1) < 4 * DBL_EPSILON)
			break;
	}
	return result;
}

/* The regularised incomplete beta function of x = 1 - y. */
static double incomplete_beta(double a, double b, double x, double y)
{
	double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(y));

	if (x < (a + 1) / (a + b + 2))
		return front / (a * beta_fraction(a, b, x));
	return 1 - front / (b * beta_fraction(b, a, y));
}

double fn_student__tail(double t, double freedom)
{
	if (!t)
		return 1;
	if (freedom <= 0 || freedom > MAX_FREEDOM)
		return erfc(fabs(t) / M_SQRT2);
	if (isinf(t))
		return 0;
	return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t),
			       t * t / (freedom + t * t));
}

/*
 * Returns the odds p / (1 - p) below which the beta distribution has a part. Newton's method for
 * the logarithm of its distribution, which is concave in the log odds, so each step but the first
 * approaches from below.
 */
static double find_lowest_odds(double a, double b, double part)
{
	const double front = lgamma(a + b) - lgamma(a) - lgamma(b);
	double x = log(a / b) - NORMAL_95 * sqrt(1 / a + 1 / b), step;

	/* Less than half a sample has odds below 1 / 1600, which tell no end. */
	if (a < 0.5)
		return 0;
	for (int i = 0; i < 50; i++) {
		double p = 1 / (1 + exp(-x)), q = 1 / (1 + exp(x));
		double below = incomplete_beta(a, b, p, q);

		step = log(part / below) * below / exp(front + a * log(p) + b * log(q));
		x += step;
		if (!(fabs(step) > 4096 * DBL_EPSILON))
			break;
	}
	return exp(x);
}

/* Many rows have the same small numbers, or the same degrees of freedom in all columns. */
static double lowest_odds(double a, double b, double part)
{
	static struct {
		double a, b, part, odds;
	} known[4096], *last;

	/* Sums of a damaged file may be of no samples at all. */
	if (!(a >= 0 && b >= 0 && isfinite(a + b)))
		return NAN;
	last = &known[(unsigned int)(fmod(a, 1e6) * 61 + fmod(b, 1e6) * 7) % ARRAY_SIZE(known)];
	if (last->a != a || last->b != b || last->part != part) {
		last->odds = find_lowest_odds(a, b, part);
		last->a = a;
		last->b = b;
		last->part = part;
	}
	return last->odds;
}

double fn_student__quantile(double freedom)
{
	if (isnan(freedom))
		return NAN;
	if (freedom <= 0 || freedom > MAX_FREEDOM)
		return NORMAL_95;
	/* freedom / (freedom + t^2) has a beta distribution. */
	return sqrt(freedom / lowest_odds(freedom / 2, 0.5, 0.05));
}

static void set(struct fn_value *value, double low, double high)
{
	value->low = low;
	value->high = high;
}

/* Returns half of the width on the scale on which the interval is symmetric. */
static double half_width(const struct fn_value *value, double per)
{
	return 2 * asinh(fn_student__quantile(value->freedom) * value->error / (2 * per));
}

/* Returns how many events are in the observation of a random event. */
static double crowd_of(const struct fn_count *count)
{
	return count->total > 0 ? count->squares / count->total : 1;
}

/*
 * Returns the factor by which an interval reaches farther towards more events: 1 if events are
 * spread over windows by chance (Poisson) or more evenly, and up to 2 if few windows hold them all.
 */
static double stretch(const struct fn_count *count)
{
	double by_chance = 1 + count->total / count->number;

	return fmax(2 - by_chance / crowd_of(count), 1);
}

/* The interval of a ratio of totals. */
void fn_value__ratio_interval(const struct fn_pair *pair, struct fn_value *value)
{
	double r = value->value, few = RULE_OF_THREE * pair->scale / pair->per, half, low, high;
	double more = few * fmax(fmax(pair->y.crowd, crowd_of(&pair->y)), 1);

	if (pair->y.total <= 0) {
		set(value, 0, more);
	} else if (!isnan(value->error)) {
		half = half_width(value, r);
		low = r / exp(half * stretch(&pair->x));
		low = fmin(low, r / (1 + RULE_OF_THREE * crowd_of(&pair->x) / pair->x.total));
		high = r * exp(half * stretch(&pair->y));
		set(value, fmin(low, fmax(r - few, 0)), fmax(high, r + more));
	}
}

/* The interval of a share of observations, of which all rows have @number equal ones. */
void fn_value__share_interval(struct fn_value *value, double whole, double number)
{
	double share = value->value / whole, few = fmin(RULE_OF_THREE / number, 1), factor;

	if (share <= 0) {
		set(value, 0, whole * few);
	} else if (share >= 1) {
		set(value, whole * (1 - few), whole);
	} else if (!isnan(value->error)) {
		factor = exp(half_width(value, whole * share * (1 - share)));
		set(value, whole * share / (share + (1 - share) * factor),
		    whole * share * factor / (share * factor + 1 - share));
	}
}

/* The interval of one number of samples per another: together they are a binomial number. */
void fn_value__count_interval(const struct fn_pair *pair, struct fn_value *value)
{
	const double events = pair->y.effective, per = pair->x.effective;
	double one = pair->scale * pair->y.crowd / pair->per * per;

	if (events > 0)
		one = value->value * per / events;
	set(value, events > 0 ? one * lowest_odds(events, per + 1, 0.025) : 0,
	    one / lowest_odds(per, events + 1, 0.025));
}

/* The interval of a part of samples, if @samples of equal weight are in all rows. */
void fn_value__part_interval(struct fn_value *value, double whole, double samples)
{
	double part = samples * value->value / whole;
	double odds = part > 0 ? lowest_odds(part, samples - part + 1, 0.025) : 0;
	double above = samples - part > 0 ? 1 / lowest_odds(samples - part, part + 1, 0.025) :
					    INFINITY;

	set(value, whole * odds / (1 + odds), isinf(above) ? whole : whole * above / (1 + above));
}

/* The interval of a product of ratios, of which only the standard error is known. */
void fn_value__log_interval(struct fn_value *value)
{
	double factor;

	if (isnan(value->error) || !(value->value > 0))
		return;
	factor = exp(half_width(value, value->value));
	set(value, value->value / factor, value->value * factor);
}

/* The interval of a value of which nothing but the standard error is known. */
void fn_value__plain_interval(struct fn_value *value)
{
	double half = fn_student__quantile(value->freedom) * value->error;

	/* Without events the standard error says nothing, see above. */
	if (!isnan(half) && (value->value || half))
		set(value, value->value - half, value->value + half);
}
