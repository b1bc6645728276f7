// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// How an asynchronous test of the suite says that it is over.
function $DONE(error) {
  const text = typeof error === "object" && error !== null ? `${error.name}: ${error.message}` : error;
  print(error ? `Test262:AsyncTestFailure:${text}` : "Test262:AsyncTestComplete");
}
