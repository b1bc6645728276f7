// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/object.h"

namespace sw::object {

Task<Result<void>> Object::start() { co_return Result<void>(); }

Task<Result<void>> Object::on_alarm(Time /*scheduled*/) { co_return Result<void>(); }

}  // namespace sw::object
