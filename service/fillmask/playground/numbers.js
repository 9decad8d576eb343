// Number formats of the page.

import { LANGUAGE, STRINGS } from "./strings.js";

const CEILINGS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
const BITS = [2, 5, 9, 13]; // upper bounds of the levels of surprisal

/** Return 0.7278 as "72.78 %". Small values have two digits, such as "0.0087 %" or "3.6e−9 %". */
export function percent(share) {
  const hundredths = share * 100;
  if (hundredths >= 0.01 || hundredths === 0) return STRINGS.percent(hundredths.toFixed(2));
  if (hundredths >= 0.0001) return STRINGS.percent(Number(hundredths.toPrecision(2)));
  return STRINGS.percent(hundredths.toExponential(1).replace("e-", "e−"));
}

export const bits = (surprisal) => STRINGS.bits(surprisal.toFixed(1));

/** Return a number with about three digits and a real minus sign, such as "−31.2". */
export function figure(number) {
  const digits = Math.abs(number) >= 1000 ? 0 : 1;
  const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return number.toLocaleString(LANGUAGE, options).replace("-", "−");
}

/** Return a logit with four decimals and a real minus sign, such as "−1.2617". */
export const score = (number) => number.toFixed(4).replace("-", "−");

export const whole = (number) => number.toLocaleString(LANGUAGE);

/** Return the round share that a full bar represents, the smallest that the largest bar does not exceed. */
export const ceiling = (largest) => CEILINGS.find((one) => largest <= one) ?? 1;

/** Return the legend of a full bar, such as "Full bar: 50 %". */
export const fullBar = (share) => STRINGS.fullBar(Math.round(share * 100));

/** Return the level of surprisal, from 0 (expected) to 4. */
export function level(surprisal) {
  const found = BITS.findIndex((limit) => surprisal < limit);
  return found < 0 ? BITS.length : found;
}

/** Names of the levels, for the legend. */
export const levels = [...BITS.map((to, i) => `${BITS[i - 1] ?? 0}–${to}`), STRINGS.overBits(BITS.at(-1))];
