// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages that answer with a value.

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "object/host.h"

namespace sw::object {

/// A message to an object of class T that answers with a V. Not a coroutine itself, but a function
/// that starts one:
/// `[text](Greeter& greeter) { return greeter.greet(text); }`.
template <class T, class V>
using Question = std::function<Task<Result<V>>(T&)>;

namespace detail {

template <class T, class V>
Task<Result<void>> answer_into(Question<T, V> question, Object* object,
                               std::shared_ptr<std::optional<V>> answer) {
  Result<V> result = co_await question(static_cast<T&>(*object));
  if (!result.ok()) co_return std::move(result).error();
  *answer = std::move(result).value();
  co_return Result<void>();
}

}  // namespace detail

/// Asks an object and calls `reply` with the answer. T must be the type of the objects of that
/// class.
template <class T, class V>
std::shared_ptr<Call> send(ObjectHost& host, const storage::ObjectName& name,
                           Question<T, V> question, std::function<void(Result<V>)> reply) {
  auto answer = std::make_shared<std::optional<V>>();  // shared by the message and its reply
  return host.send(
      name,
      [question = std::move(question), answer](Object& object) {
        return detail::answer_into<T, V>(question, &object, answer);
      },
      [answer, reply = std::move(reply)](Result<void> outcome) {
        if (!outcome.ok()) return reply(std::move(outcome).error());
        reply(std::move(**answer));
      });
}

/// Asks an object and waits for the answer. Not from a thread of the host.
template <class T, class V>
Result<V> ask(ObjectHost& host, const storage::ObjectName& name, Question<T, V> question) {
  auto answer = std::make_shared<std::optional<V>>();  // shared with the message
  auto outcome = host.ask(name, [question = std::move(question), answer](Object& object) {
    return detail::answer_into<T, V>(question, &object, answer);
  });
  if (!outcome.ok()) return std::move(outcome).error();
  return std::move(**answer);
}

/// Asks an object from within another's task, and cancels the question if that task is cancelled.
/// An object that asks itself, directly or by way of others, waits for ever: its mailbox is busy
/// with the asking.
template <class T, class V>
Task<Result<V>> call(ObjectHost& host, storage::ObjectName name, Question<T, V> question) {
  namespace asio = boost::asio;
  auto answer = std::make_shared<std::optional<Result<V>>>();  // shared with the reply
  auto initiate = [&host, name = std::move(name), question = std::move(question),
                   answer](auto handler) mutable {
    auto slot = asio::get_associated_cancellation_slot(handler);
    auto resume = std::make_shared<decltype(handler)>(std::move(handler));  // a Reply can be copied
    const auto asked =
        send<T, V>(host, name, std::move(question), [resume, slot, answer](Result<V> result) {
          *answer = std::move(result);
          // Posted in any case: a question that is refused is answered before `assign` below.
          asio::post(asio::get_associated_executor(*resume), [resume, slot]() mutable {
            if (slot.is_connected()) slot.clear();
            (*resume)();
          });
        });
    if (slot.is_connected()) slot.assign([asked](asio::cancellation_type) { asked->cancel(); });
  };
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(std::move(initiate),
                                                                       asio::use_awaitable);
  co_return std::move(**answer);
}

}  // namespace sw::object
