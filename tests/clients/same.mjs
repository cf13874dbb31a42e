// Compares two values.
export function same(what, told, expected) {
  const [one, two] = [JSON.stringify(told), JSON.stringify(expected)];
  if (one !== two) throw new Error(`${what} is ${one}, not ${two}`);
}
