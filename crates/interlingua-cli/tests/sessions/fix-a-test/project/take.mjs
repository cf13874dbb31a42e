// The first line of the input, without its line feed, up to a limit.
export function take(input, limit) {
  let end = 0;
  while (input.at(end) !== 10 && end <= limit) {
    end += 1;
  }
  return input.subarray(0, end);
}
