// Figures as they are shown.

const CEILINGS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
const BITS = [2, 5, 9, 13]; // where a level of surprisal ends

/** 0.7278 as "72.78 %"; what would be 0.00 keeps two figures: "0.0087 %", "3.6e−9 %". */
export function percent(share) {
  const hundredths = share * 100;
  if (hundredths >= 0.01 || hundredths === 0) return `${hundredths.toFixed(2)} %`;
  if (hundredths >= 0.0001) return `${Number(hundredths.toPrecision(2))} %`;
  return `${hundredths.toExponential(1).replace("e-", "e−")} %`;
}

export const bits = (surprisal) => `${surprisal.toFixed(1)} bits`;

/** With a real minus and three figures or so: "−31.2". */
export function figure(number) {
  const digits = Math.abs(number) >= 1000 ? 0 : 1;
  const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return number.toLocaleString("en", options).replace("-", "−");
}

export const whole = (number) => number.toLocaleString("en");

/** The round share that the longest bar stands for: the least that holds all. */
export function ceiling(shares) {
  const largest = Math.max(0, ...shares);
  return CEILINGS.find((one) => largest <= one) ?? 1;
}

/** 0 for what was to be expected, up to 4. */
export function level(surprisal) {
  const found = BITS.findIndex((limit) => surprisal < limit);
  return found < 0 ? BITS.length : found;
}

/** The levels in words, for the legend. */
export const levels = [...BITS.map((to, i) => `${BITS[i - 1] ?? 0}–${to}`), `over ${BITS.at(-1)}`];
